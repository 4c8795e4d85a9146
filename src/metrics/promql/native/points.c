/*
 * The points of an answer as JSON: [1700000040,"1.5"],[1700000100,"2"] …
 *
 * Most of a large answer is numbers, and most of its cost was to find for each the fewest digits that give it back.
 * That is done here by Schubfach (R. Giulietti, "The Schubfach way to render doubles", 2021), and laid out as
 * JavaScript lays out numbers. The powers of ten are computed by points.ts, which also says where everything lies.
 */
typedef unsigned char u8;
typedef unsigned int u32;
typedef int i32;
typedef unsigned long long u64;

typedef struct {
  u64 high, low;
} pair;

#define FIRST_POWER -292

static const pair *powers;

__attribute__((export_name("set_powers"))) void set_powers(const pair *at) {
  powers = at;
}

static inline i32 floor_log2_pow10(i32 e) { return (e * 1741647) >> 19; }
static inline i32 floor_log10_pow2(i32 e) { return (e * 1262611) >> 22; }
static inline i32 floor_log10_three_quarters_pow2(i32 e) { return (e * 1262611 - 524031) >> 22; }

static inline pair multiply(u64 a, u64 b) {
  u64 a0 = (u32)a, a1 = a >> 32, b0 = (u32)b, b1 = b >> 32;
  u64 p00 = a0 * b0, p01 = a0 * b1, p10 = a1 * b0, p11 = a1 * b1;
  u64 middle = (p00 >> 32) + (u32)p01 + (u32)p10;
  pair product = {p11 + (p01 >> 32) + (p10 >> 32) + (middle >> 32), (middle << 32) | (u32)p00};
  return product;
}

/* Divisions by multiplying, which takes a third of the time; right for every 64-bit number. */
static inline u64 by_ten(u64 value) { return multiply(value, 0xcccccccccccccccdull).high >> 3; }
static inline u64 by_billion(u64 value) { return multiply(value >> 9, 0x44b82fa09b5a53ull).high >> 11; }

/* The upper part of g × c, its last bit set when anything was cut off. */
static inline u64 round_to_odd(pair g, u64 c) {
  pair x = multiply(g.low, c), y = multiply(g.high, c);
  u64 low = y.low + x.high;
  u64 high = y.high + (low < y.low);
  return high | (low > 1);
}

typedef struct {
  u64 digits;
  i32 exponent;
} decimal;

/* The shortest decimal that is read back as this number, which is neither 0 nor infinite. */
static decimal shortest(u64 fraction, u32 biased) {
  u64 c = fraction;
  i32 q = -1074;
  if (biased != 0) {
    c |= 1ull << 52;
    q = (i32)biased - 1075;
    if (-53 < q && q <= 0 && (c & ((1ull << -q) - 1)) == 0) {
      decimal whole = {c >> -q, 0};
      return whole;
    }
  }
  u64 odd = c & 1;
  u64 closer = fraction == 0 && biased > 1;
  i32 k = closer ? floor_log10_three_quarters_pow2(q) : floor_log10_pow2(q);
  i32 h = q + floor_log2_pow10(-k) + 1;
  pair g = powers[-k - FIRST_POWER];
  u64 lower = round_to_odd(g, (4 * c - 2 + closer) << h) + odd;
  u64 v = round_to_odd(g, (4 * c) << h);
  u64 upper = round_to_odd(g, (4 * c + 2) << h) - odd;
  u64 s = v / 4;
  if (s >= 10) {
    u64 tens = by_ten(s);
    u32 below = lower <= 40 * tens, above = 40 * tens + 40 <= upper;
    if (below != above) {
      decimal found = {tens + above, k + 1};
      return found;
    }
  }
  u32 below = lower <= 4 * s, above = 4 * s + 4 <= upper;
  u32 up = below != above ? above : v > 4 * s + 2 || (v == 4 * s + 2 && (s & 1));
  decimal found = {s + up, k};
  return found;
}

/* Eight bytes at a time, and up to seven too many: there is always room behind what is written. */
static inline void copy(u8 *to, const u8 *from, u32 count) {
  for (u32 i = 0; i < count; i += 8) __builtin_memcpy(to + i, from + i, 8);
}

/* The last `count` digits, which end before `end`. */
static inline void put_backwards(u32 value, u32 count, u8 *end) {
  for (u32 i = 1; i <= count; i++) {
    end[-(i32)i] = (u8)('0' + value % 10);
    value /= 10;
  }
}

static inline u32 length_of(u32 value) {
  u32 n = 1;
  for (; value >= 10; value /= 10) n++;
  return n;
}

/* Parts of 32 bits, because dividing those is cheap. */
static u32 put_digits(u64 value, u8 *out) {
  if (value < 1000000000) {
    u32 count = length_of((u32)value);
    put_backwards((u32)value, count, out + count);
    return count;
  }
  u64 upper = by_billion(value);
  u32 before = put_digits(upper, out);
  put_backwards((u32)(value - upper * 1000000000), 9, out + before + 9);
  return before + 9;
}

static u32 put_word(const char *word, u8 *out) {
  u32 n = 0;
  for (; word[n]; n++) out[n] = (u8)word[n];
  return n;
}

static u32 put_exponent(i32 exponent, u8 *out) {
  u32 n = 0;
  out[n++] = 'e';
  out[n++] = exponent < 0 ? '-' : '+';
  return n + put_digits((u64)(exponent < 0 ? -exponent : exponent), out + n);
}

/* Digits and a point where JavaScript puts it: `point` digits stand before it. */
static u32 lay_out(const u8 *digits, u32 count, i32 point, u8 *out) {
  u32 n = 0;
  if (point > 21 || point < -5) {
    out[n++] = digits[0];
    if (count > 1) out[n++] = '.';
    copy(out + n, digits + 1, count - 1);
    n += count - 1;
    return n + put_exponent(point - 1, out + n);
  }
  if (point <= 0) {
    out[n++] = '0';
    out[n++] = '.';
    for (i32 i = point; i < 0; i++) out[n++] = '0';
    copy(out + n, digits, count);
    return n + count;
  }
  copy(out, digits, count);
  if (count <= (u32)point) {
    for (n = count; n < (u32)point; n++) out[n] = '0';
    return n;
  }
  out[point] = '.';
  copy(out + point + 1, digits + point, count - (u32)point);
  return count + 1;
}

static u32 put_number(u64 bits, u8 *out) {
  u64 fraction = bits & ((1ull << 52) - 1);
  u32 biased = (u32)(bits >> 52) & 2047;
  if (biased == 2047) return put_word(fraction ? "NaN" : bits >> 63 ? "-Inf" : "+Inf", out);
  if (biased == 0 && fraction == 0) return put_word("0", out);
  u32 n = 0;
  if (bits >> 63) out[n++] = '-';
  decimal found = shortest(fraction, biased);
  u8 digits[32];
  u32 count = put_digits(found.digits, digits);
  i32 point = (i32)count + found.exponent;
  while (digits[count - 1] == '0') count--;
  return n + lay_out(digits, count, point, out + n);
}

/* Each point begins with its time, as text up to `ends`. Answers how many bytes were written. */
__attribute__((export_name("write_points"))) u32 write_points(
    u32 count, const u64 *values, const u8 *times, const u32 *ends, u8 *out) {
  u8 *start = out;
  u32 from = 0;
  for (u32 i = 0; i < count; i++) {
    if (i > 0) *out++ = ',';
    copy(out, times + from, ends[i] - from);
    out += ends[i] - from;
    from = ends[i];
    *out++ = '"';
    out += put_number(values[i], out);
    *out++ = '"';
    *out++ = ']';
  }
  return (u32)(out - start);
}
