/** Files that a person dropped or chose, with their paths from the folder in which they were. */
export interface Chosen {
  path: string;
  file: File;
}

export function chosenIn(list: FileList | null): Chosen[] {
  return [...(list ?? [])].map(file => ({path: file.webkitRelativePath || file.name, file}));
}

/** What was dropped; the folders among it are walked through. The entries are only there while the event is handled, so they are taken at once. */
export async function droppedIn(transfer: DataTransfer): Promise<Chosen[]> {
  const taken = [...transfer.items].map(item => item.webkitGetAsEntry() ?? item.getAsFile()).filter(one => one !== null);
  const found: Chosen[] = [];
  for (const one of taken) {
    if (one instanceof File) found.push({path: one.name, file: one});
    else await walk(one, found);
  }
  return found;
}

async function walk(entry: FileSystemEntry, found: Chosen[]): Promise<void> {
  const path = entry.fullPath.replace(/^\/+/, '');
  if (entry.isFile) {
    found.push({path, file: await new Promise<File>((resolve, reject) => (entry as FileSystemFileEntry).file(resolve, reject))});
    return;
  }
  const reader = (entry as FileSystemDirectoryEntry).createReader();
  // A reader gives at most 100 entries at once, and none at the end.
  for (;;) {
    const some = await new Promise<FileSystemEntry[]>((resolve, reject) => reader.readEntries(resolve, reject));
    if (some.length === 0) return;
    for (const one of some) await walk(one, found);
  }
}
