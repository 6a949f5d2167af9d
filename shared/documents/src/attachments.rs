//! The attachments of a message: documents of their own, in the folder `<name>.attachments` beside it.
//!
//! The folder has what the current version of the message has. A file that a person wrote, moved or put there is theirs: it is not overwritten, not
//! removed, and an attachment with its name gets a number. A folder that a person moved is theirs with all that is in it.
//!
//! The entry of the message names the folder before the first attachment is written. So a later version, or the task of a removal, finds all that an
//! interrupted conversion left.

use crate::{
    found,
    names::{numbered, safe},
    remove_made, writer,
};
use bytes::Bytes;
use domain::{Code, Conversion, ConversionStatus, Error, FileId, FilePath, Sha256, text::counted};
use ports::MAX_ATTACHMENTS;
use std::collections::{HashMap, HashSet};
use workspace::{
    Expect, FileKind, Info, Workspace, Writer,
    documents::{ATTACHMENTS, ConvertedAttachment, attachments_path},
};

/// How many attachments of a message become files, by the number of messages that it lies in: in deeper ones none do. So a message makes
/// 32,100 files at most.
const MOST: [usize; 4] = [MAX_ATTACHMENTS, 20, 5, 2];
/// How many names are tried for an attachment whose name is taken.
const NAMES: usize = 100;
/// The line before the list of attachments in a Markdown.
const MARK: &str = "\n<!-- attachments -->\n";

/// The attachments of a message as files.
#[derive(Default)]
pub(crate) struct Placed {
    /// Their folder; none when there is no file.
    pub folder: Option<FileId>,
    /// The files, in the order of the message.
    pub files: Vec<ConvertedAttachment>,
    /// The list for the Markdown of the message; empty when it has no attachments.
    pub list: String,
    /// Whether each attachment is a file.
    pub is_whole: bool,
}

impl Placed {
    /// No files.
    fn none(attachments: &[(String, Bytes)], why: &str) -> Self {
        let list = match attachments.len() {
            0 => String::new(),
            count => list(&left_out(count, why)),
        };
        Self { is_whole: attachments.is_empty(), list, ..Self::default() }
    }
}

/// A file, and the precondition under which an attachment is written there.
enum Destination {
    /// It is written there.
    Write(FilePath, Expect),
    /// A version of a file of somebody else has the same content.
    There(FilePath, FileId, u64),
}

/// Makes the folder of a message have these attachments, and no others that a conversion made. Versions are written by `by`. None when the message has
/// changed or gone meanwhile.
///
/// # Errors
/// Those of a store; `CONFLICT` and `STALE_VERSION` when others write there at the same time. A repetition goes on where it stopped.
pub(crate) async fn put(
    workspace: &Workspace,
    message: &Info,
    attachments: &[(String, Bytes)],
    by: &Writer,
) -> Result<Option<Placed>, Error> {
    let (to, most) = match folder_for(workspace, message, attachments).await? {
        Ok(found) => found,
        Err(why) => {
            clear(workspace, message).await?;
            return Ok(Some(Placed::none(attachments, &why)));
        }
    };
    let by = Writer { attaches: true, ..by.clone() };
    let before = recorded(message);
    if let Some(before) = before {
        bring(workspace, message.file_id, before, &to).await?;
    }
    let folder = match workspace.mkdir(&to, &by).await {
        Ok(made) => made.file_id,
        // Too many folders in each other, or the like.
        Err(error) if error.code == Code::InvalidArgument => {
            return Ok(Some(Placed::none(attachments, &error.message)));
        }
        Err(error) => return Err(error),
    };
    if before != Some(folder) && !record(workspace, message, folder).await? {
        remove(workspace, message.file_id, folder, Some(&to)).await?;
        return Ok(None);
    }
    let there = entries(workspace, &to).await?;
    let mut free = FreeNames::new(message.file_id, &to, &there, attachments);
    let (mut placed, mut rows) = (Placed { is_whole: true, ..Placed::default() }, String::new());
    for (number, (name, content)) in (1..=most).zip(attachments) {
        let file = match free.place(number, name, content) {
            Ok(place) => write(workspace, place, content, &by).await?,
            Err(why) => Err(why),
        };
        match file {
            Ok((path, file_id, v)) => {
                rows.push_str(&row(message, &path, content.len()));
                free.kept.insert(file_id);
                placed.files.push(ConvertedAttachment { name: name.clone(), file_id, v });
            }
            Err(why) => {
                rows.push_str(&format!(
                    "- {}, {}: left out, {why}\n",
                    escaped(&safe(name, number)),
                    counted(content.len(), "byte")
                ));
                placed.is_whole = false;
            }
        }
    }
    let over = attachments.len().saturating_sub(most);
    if over > 0 {
        rows.push_str(&left_out(over, &format!("a message as deep in others gives {most} at most")));
        placed.is_whole = false;
    }
    for gone in there.iter().filter(|it| is_of(it, message.file_id) && !free.kept.contains(&it.file_id)) {
        remove_made(workspace, message.file_id, gone).await?;
    }
    if placed.files.is_empty() {
        remove(workspace, message.file_id, folder, Some(&to)).await?;
    } else {
        placed.folder = Some(folder);
    }
    placed.list = list(&rows);
    Ok(Some(placed))
}

/// The folder for the attachments of a message, and how many become files; or why none do, which is no reason when there are none.
async fn folder_for(
    workspace: &Workspace,
    message: &Info,
    attachments: &[(String, Bytes)],
) -> Result<Result<(FilePath, usize), String>, Error> {
    if attachments.is_empty() {
        return Ok(Err(String::new()));
    }
    let above = message.path.parent().unwrap_or_else(FilePath::root);
    let depth = above.names().filter(|name| name.ends_with(ATTACHMENTS)).count();
    let Some(most) = MOST.get(depth) else {
        return Ok(Err("it lies too deep in other messages".into()));
    };
    let Ok(to) = attachments_path(&message.path) else {
        return Ok(Err("the name of the message is too long for a folder".into()));
    };
    Ok(match found(workspace.stat(&to).await)? {
        Some(there) if there.kind != FileKind::Folder => Err(format!("{to} is a file")),
        Some(_) | None => Ok((to, *most)),
    })
}

/// The folder that the entry of a message names.
fn recorded(message: &Info) -> Option<FileId> {
    message.conversion.as_ref().and_then(|conversion| conversion.attachments)
}

/// Has the entry of a message name this folder. False when the message has changed or gone.
async fn record(workspace: &Workspace, message: &Info, folder: FileId) -> Result<bool, Error> {
    let markdown = message.conversion.as_ref().and_then(|conversion| conversion.markdown);
    let running = Conversion::new(ConversionStatus::Running, markdown).with_attachments(Some(folder));
    Ok(found(workspace.note_conversion(message, running, None).await)?.unwrap_or(false))
}

/// Which names a folder has left for attachments.
struct FreeNames<'a> {
    message: FileId,
    folder: &'a FilePath,
    /// By its name in lower case.
    there: HashMap<String, &'a Info>,
    /// The names that attachments have by themselves, in lower case: a number makes none of them.
    own: HashSet<String>,
    /// The names that are given away, in lower case.
    given: HashSet<String>,
    /// The files that stay.
    kept: HashSet<FileId>,
}

impl<'a> FreeNames<'a> {
    fn new(message: FileId, folder: &'a FilePath, there: &'a [Info], attachments: &[(String, Bytes)]) -> Self {
        let there = there.iter().map(|info| (info.name.to_lowercase(), info)).collect();
        let own = (1..).zip(attachments).map(|(number, (name, _))| safe(name, number).to_lowercase()).collect();
        Self { message, folder, there, own, given: HashSet::new(), kept: HashSet::new() }
    }

    /// The place of an attachment; or why there is none.
    fn place(&mut self, number: usize, name: &str, content: &Bytes) -> Result<Destination, String> {
        let name = safe(name, number);
        for nth in 1..=NAMES {
            let name = numbered(&name, nth);
            let key = name.to_lowercase();
            if self.given.contains(&key) || nth > 1 && self.own.contains(&key) {
                continue;
            }
            let place = match self.there.get(&key) {
                None => match self.folder.join(&name) {
                    Ok(path) => Destination::Write(path, Expect::Absent),
                    Err(error) => return Err(error.to_string()),
                },
                Some(there) if is_of(there, self.message) => {
                    Destination::Write(there.path.clone(), Expect::Exactly(there.file_id, there.v))
                }
                Some(there) if is_same(there, content) => {
                    Destination::There(there.path.clone(), there.file_id, there.v)
                }
                Some(_) => continue,
            };
            self.given.insert(key);
            return Ok(place);
        }
        Err("its name is taken".into())
    }
}

/// Whether a file is an attachment of this message, and nobody has made it their own.
fn is_of(info: &Info, message: FileId) -> bool {
    info.derived_from == Some(message) && info.kind == FileKind::File
}

fn is_same(info: &Info, content: &Bytes) -> bool {
    info.kind == FileKind::File && info.size == content.len() as u64 && info.sha256 == Some(Sha256::of(content))
}

/// Writes an attachment: its path, file and version; or why it cannot be there. The same content makes no new version.
async fn write(
    workspace: &Workspace,
    place: Destination,
    content: &Bytes,
    by: &Writer,
) -> Result<Result<(FilePath, FileId, u64), String>, Error> {
    let (path, expect) = match place {
        Destination::There(path, file_id, v) => return Ok(Ok((path, file_id, v))),
        Destination::Write(path, expect) => (path, expect),
    };
    match workspace.write(&path, content.clone(), expect, by).await {
        Ok(change) => Ok(Ok((path, change.file_id, change.v))),
        // Too many folders in each other, or the like.
        Err(error) if matches!(error.code, Code::InvalidArgument | Code::PayloadTooLarge) => Ok(Err(error.message)),
        Err(error) => Err(error),
    }
}

/// Moves the folder of a message to its place, unless somebody moved it. Where that is taken, the attachments go, and are made again there.
async fn bring(workspace: &Workspace, message: FileId, folder: FileId, to: &FilePath) -> Result<(), Error> {
    let is_elsewhere = |it: &Info| it.path != *to && it.derived_from == Some(message);
    let Some(there) = found(workspace.by_id(folder).await)?.filter(is_elsewhere) else { return Ok(()) };
    match workspace.mv_expecting(&there.path, to, Expect::Exactly(folder, there.v), &writer(message)).await {
        Ok(_) => Ok(()),
        // Somebody has moved or removed it by now.
        Err(error) if matches!(error.code, Code::NotFound | Code::StaleVersion) => Ok(()),
        Err(error) if matches!(error.code, Code::Conflict | Code::InvalidArgument) => {
            remove(workspace, message, folder, None).await
        }
        Err(error) => Err(error),
    }
}

/// Puts the attachments of a message that left the path `from` into the trash, as far as they lie there in a folder of somebody else. They are made again
/// at the new place of the message. A folder that a conversion made follows its message instead.
pub(crate) async fn leave(
    workspace: &Workspace,
    message: FileId,
    folder: FileId,
    from: &FilePath,
) -> Result<(), Error> {
    let Ok(place) = attachments_path(from) else { return Ok(()) };
    match found(workspace.by_id(folder).await)? {
        Some(there) if there.derived_from != Some(message) => remove(workspace, message, folder, Some(&place)).await,
        Some(_) | None => Ok(()),
    }
}

/// Puts all attachments of a message into the trash, also those of a conversion that was interrupted.
pub(crate) async fn clear(workspace: &Workspace, message: &Info) -> Result<(), Error> {
    let place = attachments_path(&message.path).ok();
    if let Some(folder) = recorded(message) {
        remove(workspace, message.file_id, folder, place.as_ref()).await?;
    }
    let Some(place) = place else { return Ok(()) };
    match found(workspace.stat(&place).await)? {
        Some(there) if there.derived_from == Some(message.file_id) => {
            remove(workspace, message.file_id, there.file_id, Some(&place)).await
        }
        Some(_) | None => Ok(()),
    }
}

/// Puts the attachments in a folder into the trash: with the folder, if a conversion made it and all that is in it. A folder that somebody else made or
/// moved loses its attachments only at `place`, that of the message.
pub(crate) async fn remove(
    workspace: &Workspace,
    message: FileId,
    folder: FileId,
    place: Option<&FilePath>,
) -> Result<(), Error> {
    let Some(there) = found(workspace.by_id(folder).await)? else { return Ok(()) };
    let is_made = there.derived_from == Some(message);
    if !is_made && place != Some(&there.path) {
        return Ok(());
    }
    if is_made && has_only_made(workspace, message, &there.path).await? {
        return remove_made(workspace, message, &there).await;
    }
    for info in entries(workspace, &there.path).await?.iter().filter(|info| is_of(info, message)) {
        remove_made(workspace, message, info).await?;
    }
    Ok(())
}

/// Whether a folder, and each folder in it, has nothing but what conversions made of this message and of the messages in it.
async fn has_only_made(workspace: &Workspace, message: FileId, folder: &FilePath) -> Result<bool, Error> {
    let mut folders = vec![(message, folder.clone())];
    while let Some((message, folder)) = folders.pop() {
        let there = entries(workspace, &folder).await?;
        let made: HashSet<FileId> = there.iter().filter(|it| is_of(it, message)).map(|it| it.file_id).collect();
        for info in there {
            if made.contains(&info.file_id) {
                continue;
            }
            let Some(inner) = info.derived_from.filter(|of| made.contains(of)) else { return Ok(false) };
            if info.kind == FileKind::Folder {
                folders.push((inner, info.path));
            }
        }
    }
    Ok(true)
}

/// All entries of a folder; none when it is not there.
async fn entries(workspace: &Workspace, folder: &FilePath) -> Result<Vec<Info>, Error> {
    let (mut all, mut cursor) = (Vec::new(), None);
    loop {
        let page = match workspace.ls_whole(folder, 1_000, cursor).await {
            Ok(page) => page,
            Err(error) if error.code == Code::NotFound => return Ok(all),
            Err(error) => return Err(error),
        };
        all.extend(page.entries);
        cursor = page.next_cursor;
        if cursor.is_none() {
            return Ok(all);
        }
    }
}

/// The row for attachments that are no files.
fn left_out(count: usize, why: &str) -> String {
    format!("[{count} left out: {why}]\n")
}

fn list(rows: &str) -> String {
    format!("{MARK}\n## Attachments\n\n{rows}")
}

/// A text without its list of attachments.
pub(crate) fn without_list(text: &str) -> &str {
    text.rfind(MARK).map_or(text, |at| &text[..at])
}

/// A line of the list, with a link from the folder of the message.
fn row(message: &Info, path: &FilePath, length: usize) -> String {
    let folder = message.path.parent().unwrap_or_else(FilePath::root);
    let below = path.as_str().strip_prefix(folder.as_str()).unwrap_or(path.as_str()).trim_start_matches('/');
    format!("- [{}]({}), {}\n", escaped(path.name()), encoded(below), counted(length, "byte"))
}

/// A name as text of Markdown.
fn escaped(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    for c in name.chars() {
        if matches!(c, '\\' | '[' | ']' | '`' | '*' | '_' | '<' | '&' | '!') {
            text.push('\\');
        }
        text.push(c);
    }
    text
}

/// A path as the target of a link: what has a meaning in Markdown or in addresses is percent-encoded.
fn encoded(path: &str) -> String {
    let mut target = String::with_capacity(path.len());
    for c in path.chars() {
        match c {
            '/' | '-' | '.' | '_' | '~' => target.push(c),
            _ if c.is_alphanumeric() => target.push(c),
            _ => c.encode_utf8(&mut [0; 4]).bytes().for_each(|byte| target.push_str(&format!("%{byte:02X}"))),
        }
    }
    target
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_leads_to_its_file_whatever_its_name_is() {
        assert_eq!(encoded("a b.eml.attachments/c (2)#1%.pdf"), "a%20b.eml.attachments/c%20%282%29%231%25.pdf");
        assert_eq!(encoded("über/日本.txt"), "über/日本.txt");
        assert_eq!(escaped("[x](y)_z"), "\\[x\\](y)\\_z");
    }

    #[test]
    fn the_list_is_taken_off_a_text_and_nothing_else() {
        let text = format!("# A\n{}", list("- [a](b)\n"));
        assert_eq!(without_list(&text), "# A\n");
        assert_eq!(without_list("# A\n"), "# A\n");
    }
}
