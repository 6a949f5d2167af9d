//! The terminal of the person: a program that types into it has the shell behind it run that text, outside of every wall.
//!
//! Landlock opens terminals, because many programs need one, and knows no request to a device from another. So seccomp refuses the two requests that
//! type. All else stays: this wall is around programs that act as the person who runs the host, those of other architectures among them.

use crate::run::Refusal;
use libc::EPERM;
use seccompiler::{apply_filter, sock_filter};

/// Puts a byte into the input of a terminal.
pub(super) const TIOCSTI: i32 = 0x5412;
/// Pastes into a console of the machine.
pub(super) const TIOCLINUX: i32 = 0x541c;

/// The number of `ioctl` on x86-32 and on 32-bit Arm.
const IOCTL_OF_32_BITS: u32 = 54;
/// The number of `ioctl` by the x32 way into x86-64. No other architecture has such a number.
const IOCTL_OF_X32: u32 = 0x4000_0000 | 514;
/// This architecture, as the kernel names it (`AUDIT_ARCH_…`).
#[cfg(target_arch = "x86_64")]
const NATIVE: u32 = 0xc000_003e;
#[cfg(not(target_arch = "x86_64"))]
const NATIVE: u32 = 0xc000_00b7;

/// The places in `struct seccomp_data`: the number of the call, its architecture, and the low half of its second argument.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;
const REQUEST: u32 = 24;

/// `BPF_LD | BPF_W | BPF_ABS`
const LOAD: u16 = 0x20;
/// `BPF_JMP | BPF_JEQ | BPF_K`
const IS: u16 = 0x15;
/// `BPF_RET | BPF_K`
const RETURN: u16 = 0x06;

/// Keeps this thread and all that it starts from typing into terminals, for ever.
///
/// # Errors
/// [`Refusal::Refused`] when this machine has no seccomp.
pub(super) fn keep_from_typing() -> Result<(), Refusal> {
    apply_filter(&filter())
        .map_err(|error| Refusal::Refused(format!("programs are confined by seccomp, and cannot be here: {error}")))
}

/// The numbers behind a condition are the instructions that are skipped when it holds, and when it does not.
fn filter() -> [sock_filter; 11] {
    let load = |k| sock_filter { code: LOAD, jt: 0, jf: 0, k };
    let is = |k, jt, jf| sock_filter { code: IS, jt, jf, k };
    let end = |k| sock_filter { code: RETURN, jt: 0, jf: 0, k };
    [
        load(NUMBER),
        is(libc::SYS_ioctl as u32, 4, 0),
        is(IOCTL_OF_X32, 3, 0),
        is(IOCTL_OF_32_BITS, 0, 5),
        load(ARCHITECTURE),
        // Here that number is another call.
        is(NATIVE, 3, 0),
        load(REQUEST),
        is(TIOCSTI.cast_unsigned(), 2, 0),
        is(TIOCLINUX.cast_unsigned(), 1, 0),
        end(libc::SECCOMP_RET_ALLOW),
        end(libc::SECCOMP_RET_ERRNO | EPERM.cast_unsigned()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The answer of the filter to a call.
    fn answer(architecture: u32, number: u32, request: u32) -> u32 {
        let (filter, mut at, mut loaded) = (filter(), 0, 0);
        while let Some(step) = filter.get(at) {
            let skipped = match (step.code, step.k) {
                (RETURN, answer) => return answer,
                (LOAD, NUMBER) => {
                    loaded = number;
                    0
                }
                (LOAD, ARCHITECTURE) => {
                    loaded = architecture;
                    0
                }
                (LOAD, _) => {
                    loaded = request;
                    0
                }
                (_, value) if loaded == value => step.jt,
                _ => step.jf,
            };
            at += 1 + usize::from(skipped);
        }
        0
    }

    #[test]
    fn typing_is_refused_by_every_way_into_the_kernel_and_nothing_else_is() {
        const OTHER: u32 = 0x4000_0003;
        let (native, size) = (libc::SYS_ioctl as u32, 0x5413);
        let refused = libc::SECCOMP_RET_ERRNO | EPERM.cast_unsigned();
        for (architecture, number) in [(NATIVE, native), (NATIVE, IOCTL_OF_X32), (OTHER, IOCTL_OF_32_BITS)] {
            for request in [TIOCSTI, TIOCLINUX] {
                assert_eq!(answer(architecture, number, request.cast_unsigned()), refused, "{number:x} {request:x}");
            }
            assert_eq!(answer(architecture, number, size), libc::SECCOMP_RET_ALLOW, "{number:x}");
        }
        for number in [IOCTL_OF_32_BITS, native + 1, 0] {
            assert_eq!(answer(NATIVE, number, TIOCSTI.cast_unsigned()), libc::SECCOMP_RET_ALLOW, "{number:x}");
        }
    }
}
