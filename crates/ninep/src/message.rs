//! The messages of 9P2000.L: requests (T) and replies (R), read from bytes and written to bytes. Used by the session, and by
//! clients in tests; bytes in, values out.

use bytes::Bytes;

use super::wire::{Field, Fields, Malformed};

/// The bytes before the body: the size of the whole message, its type and its tag.
pub const HEAD: usize = 7;

/// The tag of a version request.
pub const NO_TAG: u16 = u16::MAX;

/// The fid that stands for none.
pub const NO_FID: u32 = u32::MAX;

/// The identity of a file: what it is, and a number that no other file of the server has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Qid {
    /// One of [`QID_DIR`], [`QID_LINK`], [`QID_FILE`].
    pub kind: u8,
    /// Changes with the file, for clients that cache; 0 says nothing.
    pub version: u32,
    /// The number.
    pub path: u64,
}

/// A directory.
pub const QID_DIR: u8 = 0x80;
/// A symbolic link.
pub const QID_LINK: u8 = 0x02;
/// A file.
pub const QID_FILE: u8 = 0;

impl Field for Qid {
    fn take(fields: &mut Fields) -> Result<Self, Malformed> {
        Ok(Qid { kind: fields.take()?, version: fields.take()?, path: fields.take()? })
    }

    fn put(&self, message: &mut Vec<u8>) {
        self.kind.put(message);
        self.version.put(message);
        self.path.put(message);
    }
}

/// One direction of the protocol: an enum of messages, each with its number and its fields in order.
macro_rules! messages {
    ($(#[$doc:meta])* $name:ident { $($(#[$about:meta])* $message:ident = $number:literal { $($field:ident: $type:ty),* })* }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[allow(missing_docs)] // the fields are those of the protocol
        pub enum $name {
            $($(#[$about])* $message { $($field: $type),* },)*
        }

        impl $name {
            /// Reads the body of a message of this type; `None` if there is no such type.
            pub fn read(number: u8, body: Bytes) -> Option<Result<$name, Malformed>> {
                let mut fields = Fields::new(body);
                match $name::take(number, &mut fields) {
                    Ok(message) => message.map(|message| fields.end().map(|()| message)),
                    Err(malformed) => Some(Err(malformed)),
                }
            }

            fn take(number: u8, fields: &mut Fields) -> Result<Option<$name>, Malformed> {
                Ok(Some(match number {
                    $($number => $name::$message { $($field: fields.take()?),* },)*
                    _ => return Ok(None),
                }))
            }

            /// The whole message, with its head.
            pub fn write(&self, tag: u16) -> Vec<u8> {
                let mut message = vec![0; 4];
                match self {
                    $($name::$message { $($field),* } => {
                        u8::put(&$number, &mut message);
                        tag.put(&mut message);
                        $($field.put(&mut message);)*
                    })*
                }
                let size = message.len() as u32;
                message[..4].copy_from_slice(&size.to_le_bytes());
                message
            }
        }
    };
}

messages! {
    /// What a client asks.
    Request {
        /// The figures of the file system (`statfs(2)`).
        Statfs = 8 { fid: u32 }
        /// Opens what a fid stands for; the flags are those of `open(2)` on Linux.
        Lopen = 12 { fid: u32, flags: u32 }
        /// Makes a file in the directory of a fid, and opens it by this fid.
        Lcreate = 14 { fid: u32, name: String, flags: u32, mode: u32, gid: u32 }
        Symlink = 16 { fid: u32, name: String, target: String, gid: u32 }
        Mknod = 18 { fid: u32, name: String, mode: u32, major: u32, minor: u32, gid: u32 }
        Rename = 20 { fid: u32, directory: u32, name: String }
        Readlink = 22 { fid: u32 }
        Getattr = 24 { fid: u32, mask: u64 }
        Setattr = 26 { fid: u32, valid: u32, mode: u32, uid: u32, gid: u32, size: u64, atime: u64, atime_ns: u64, mtime: u64, mtime_ns: u64 }
        Xattrwalk = 30 { fid: u32, new_fid: u32, name: String }
        Xattrcreate = 32 { fid: u32, name: String, size: u64, flags: u32 }
        /// The names of an open directory after `offset`.
        Readdir = 40 { fid: u32, offset: u64, count: u32 }
        Fsync = 50 { fid: u32, data_only: u32 }
        Lock = 52 { fid: u32, kind: u8, flags: u32, start: u64, length: u64, process: u32, client: String }
        Getlock = 54 { fid: u32, kind: u8, start: u64, length: u64, process: u32, client: String }
        Link = 70 { directory: u32, fid: u32, name: String }
        Mkdir = 72 { directory: u32, name: String, mode: u32, gid: u32 }
        Renameat = 74 { directory: u32, name: String, new_directory: u32, new_name: String }
        Unlinkat = 76 { directory: u32, name: String, flags: u32 }
        /// Begins a session, and ends the one before.
        Version = 100 { msize: u32, version: String }
        Auth = 102 { fid: u32, user: String, tree: String, uid: u32 }
        /// Makes a fid for the root.
        Attach = 104 { fid: u32, auth_fid: u32, user: String, tree: String, uid: u32 }
        /// Cancels the request with this tag.
        Flush = 108 { old_tag: u16 }
        /// Makes a fid for what is found by these names, beginning at another fid.
        Walk = 110 { fid: u32, new_fid: u32, names: Vec<String> }
        Read = 116 { fid: u32, offset: u64, count: u32 }
        Write = 118 { fid: u32, offset: u64, data: Bytes }
        /// Ends a fid.
        Clunk = 120 { fid: u32 }
        /// Removes what a fid stands for, and ends the fid.
        Remove = 122 { fid: u32 }
    }
}

messages! {
    /// What the server answers.
    Reply {
        /// A refusal, with a number of Linux.
        Lerror = 7 { errno: u32 }
        Statfs = 9 { kind: u32, block_size: u32, blocks: u64, free: u64, available: u64, files: u64, free_files: u64, id: u64, longest_name: u32 }
        Lopen = 13 { qid: Qid, iounit: u32 }
        Lcreate = 15 { qid: Qid, iounit: u32 }
        Rename = 21 {}
        Readlink = 23 { target: String }
        Getattr = 25 { valid: u64, qid: Qid, mode: u32, uid: u32, gid: u32, links: u64, device: u64, size: u64, block_size: u64, blocks: u64,
            atime: u64, atime_ns: u64, mtime: u64, mtime_ns: u64, ctime: u64, ctime_ns: u64, btime: u64, btime_ns: u64, generation: u64, data_version: u64 }
        Setattr = 27 {}
        Readdir = 41 { entries: Bytes }
        Fsync = 51 {}
        Mkdir = 73 { qid: Qid }
        Renameat = 75 {}
        Unlinkat = 77 {}
        Version = 101 { msize: u32, version: String }
        Attach = 105 { qid: Qid }
        Flush = 109 {}
        Walk = 111 { qids: Vec<Qid> }
        Read = 117 { data: Bytes }
        Write = 119 { count: u32 }
        Clunk = 121 {}
        Remove = 123 {}
    }
}

/// An entry of a directory, as [`Reply::Readdir`] holds many.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirEntry {
    /// What it is.
    pub qid: Qid,
    /// Asking from here gives the entries after this one.
    pub offset: u64,
    /// Its type, as `readdir(3)` has it.
    pub kind: u8,
    /// Its name.
    pub name: String,
}

impl Field for DirEntry {
    fn take(fields: &mut Fields) -> Result<Self, Malformed> {
        Ok(DirEntry { qid: fields.take()?, offset: fields.take()?, kind: fields.take()?, name: fields.take()? })
    }

    fn put(&self, message: &mut Vec<u8>) {
        self.qid.put(message);
        self.offset.put(message);
        self.kind.put(message);
        self.name.put(message);
    }
}

/// The entries in the reply to a [`Request::Readdir`].
pub fn dir_entries(data: Bytes) -> Result<Vec<DirEntry>, Malformed> {
    let mut entries = Vec::new();
    let mut rest = data;
    while !rest.is_empty() {
        let mut fields = Fields::new(rest.clone());
        let entry: DirEntry = fields.take()?;
        rest = rest.split_off(24 + entry.name.len());
        entries.push(entry);
    }
    Ok(entries)
}

#[cfg(test)]
mod tests;
