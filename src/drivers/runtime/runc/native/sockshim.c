/*
 * Linux 6.16 and later refuse SO_PASSCRED, SO_PASSSEC and SO_PASSPIDFD on sockets that are not unix sockets. CRIU
 * before 4.2 asks every socket for them and gives up. Loaded into such a CRIU, this answers what older kernels did: 0.
 */
#include "syscalls.h"

enum { EOPNOTSUPP = 95, SOL_SOCKET = 1, SO_PASSCRED = 16, SO_PASSSEC = 34, SO_PASSPIDFD = 76 };

extern int *__errno_location(void);

int getsockopt(int fd, int level, int name, void *value, unsigned *length) {
  long r = call6(SYS_getsockopt, fd, level, name, (word)value, (word)length, 0);
  int refused = r == -EOPNOTSUPP && level == SOL_SOCKET && (name == SO_PASSCRED || name == SO_PASSSEC || name == SO_PASSPIDFD);
  if (refused) {
    for (unsigned i = 0; i < *length; i++) ((volatile char *)value)[i] = 0;
    return 0;
  }
  if (r < 0) {
    *__errno_location() = (int)-r;
    return -1;
  }
  return (int)r;
}
