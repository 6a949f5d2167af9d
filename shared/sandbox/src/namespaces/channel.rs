//! The protocol over the socket between the host and the namespaces of a command: lines and lengths, with open files beside them.

use rustix::{
    io::{Errno, Result, retry_on_intr},
    net::{
        RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
        recvmsg, send, sendmsg,
    },
};
use std::{
    io::{IoSlice, IoSliceMut},
    mem::MaybeUninit,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

/// How many files go with a message at the most.
const FILES: usize = 4;

/// Sends all of `bytes`, the files with the first of them.
pub(super) fn tell(socket: impl AsFd, bytes: &[u8], files: &[BorrowedFd<'_>]) -> Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FILES))];
    let mut beside = SendAncillaryBuffer::new(&mut space);
    if !files.is_empty() && !beside.push(SendAncillaryMessage::ScmRights(files)) {
        return Err(Errno::TOOBIG);
    }
    let mut sent = retry_on_intr(|| sendmsg(&socket, &[IoSlice::new(bytes)], &mut beside, SendFlags::NOSIGNAL))?;
    while let Some(left) = bytes.get(sent..).filter(|left| !left.is_empty()) {
        sent += retry_on_intr(|| send(&socket, left, SendFlags::NOSIGNAL))?;
    }
    Ok(())
}

/// Reads as many bytes as `into` has room for, and none behind them.
pub(super) fn hear(socket: impl AsFd, into: &mut [u8]) -> Result<Vec<OwnedFd>> {
    let mut files = Vec::new();
    let mut read = 0;
    while let Some(room) = into.get_mut(read..).filter(|room| !room.is_empty()) {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FILES))];
        let mut beside = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::CMSG_CLOEXEC;
        let got = retry_on_intr(|| recvmsg(&socket, &mut [IoSliceMut::new(room)], &mut beside, flags))?.bytes;
        for message in beside.drain() {
            if let RecvAncillaryMessage::ScmRights(more) = message {
                files.extend(more);
            }
        }
        if got == 0 {
            return Err(Errno::PIPE);
        }
        read += got;
    }
    Ok(files)
}

/// Reads a line, and nothing behind it.
pub(super) fn hear_line(socket: impl AsFd) -> Result<(Vec<u8>, Vec<OwnedFd>)> {
    let (mut line, mut files) = (Vec::new(), Vec::new());
    let mut byte = [0];
    loop {
        files.extend(hear(&socket, &mut byte)?);
        if byte == *b"\n" {
            return Ok((line, files));
        }
        line.extend(byte);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        fs::File,
        io::{Read, Write, pipe},
        os::unix::net::UnixStream,
    };

    #[test]
    fn bytes_come_as_they_were_sent_with_the_files_beside_them() -> std::io::Result<()> {
        let (here, there) = UnixStream::pair()?;
        let (mut reads, writes) = pipe()?;
        tell(&here, b"one\ntwo\n", &[writes.as_fd()])?;
        drop(writes);
        let (line, mut files) = hear_line(&there)?;
        assert_eq!((line.as_slice(), files.len()), (b"one".as_slice(), 1));
        let mut rest = [0; 4];
        assert_eq!(hear(&there, &mut rest)?.len(), 0);
        assert_eq!(&rest, b"two\n");
        for file in files.drain(..) {
            File::from(file).write_all(b"through")?;
        }
        let mut text = String::new();
        reads.read_to_string(&mut text)?;
        assert_eq!(text, "through");
        drop(here);
        assert!(hear_line(&there).is_err());
        Ok(())
    }
}
