/** Sums that keep the small digits: Kahan's compensation in Neumaier's form. */
export class Sum {
  total = 0;
  lost = 0;

  add(value: number): void {
    const next = this.total + value;
    if (!Number.isFinite(next)) this.lost = 0;
    else if (Math.abs(this.total) >= Math.abs(value)) this.lost += this.total - next + value;
    else this.lost += value - next + this.total;
    this.total = next;
  }

  get value(): number {
    return Number.isFinite(this.total) ? this.total + this.lost : this.total;
  }
}

/** An average that first sums, and goes over to a running mean only when the sum overflows. */
export class Average {
  readonly #sum = new Sum();
  #count = 0;
  #running = false;

  add(value: number): void {
    const sum = this.#sum;
    this.#count++;
    if (!this.#running) {
      const { total, lost } = sum;
      sum.add(value);
      if (this.#count === 1 || Math.abs(sum.total) !== Number.POSITIVE_INFINITY) return;
      this.#running = true;
      sum.total = total / (this.#count - 1);
      sum.lost = lost / (this.#count - 1);
    }
    const share = (this.#count - 1) / this.#count;
    sum.total *= share;
    sum.lost *= share;
    sum.add(value / this.#count);
  }

  get value(): number {
    if (this.#running) return this.#sum.total + this.#sum.lost;
    return (this.#sum.total + this.#sum.lost) / this.#count;
  }
}

/** Population variance, Welford's way with compensated sums. */
export class Variance {
  readonly #mean = new Sum();
  readonly #squares = new Sum();
  #count = 0;

  add(value: number): void {
    this.#count++;
    const before = value - (this.#mean.total + this.#mean.lost);
    this.#mean.add(before / this.#count);
    this.#squares.add(before * (value - (this.#mean.total + this.#mean.lost)));
  }

  get value(): number {
    return (this.#squares.total + this.#squares.lost) / this.#count;
  }
}

/** Ascending with NaN first, as Prometheus' quantiles see them. */
export function sortWithNaN(values: Float64Array): Float64Array {
  values.sort();
  const first = values.findIndex((v) => Number.isNaN(v));
  if (first <= 0) return values;
  // Typed arrays sort NaN to the end.
  const numbers = values.slice(0, first);
  values.fill(Number.NaN, 0, values.length - first);
  values.set(numbers, values.length - first);
  return values;
}
