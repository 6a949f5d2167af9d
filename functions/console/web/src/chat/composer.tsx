/** The field for messages: a draft that survives a reload, files by button, paste and drop, and the choice of model and mode. */
import {useMutation} from '@tanstack/react-query';
import {upload} from 'buildscale';
import {useEffect, useRef, useState, type ClipboardEvent, type DragEvent, type KeyboardEvent, type ReactNode} from 'react';
import {uuid} from '../../../../../clients/typescript/src/pause.ts';
import {chosenIn, droppedIn, type Chosen} from '../files/chosen.ts';
import {hub} from '../hub.ts';
import {Icon} from '../icons.tsx';
import {useAtRisk, useDraft} from '../store.ts';
import {Button, Failure, IconButton, nameOf} from '../ui.tsx';

export interface Attached {
  id: string;
  path: string;
}

/** The effect of a message while a turn runs: it waits, stops the turn, or is read in it. */
export type Way = 'enqueue' | 'interrupt' | 'steer';

/** A message on its way, or one that failed. */
interface Message {
  way: Way;
  sent: string;
  along: Attached[];
  choices: string;
  /** Its idempotency key. A try that failed may have arrived, and only its answer been lost. */
  key: string;
}

/** The folder for what people attach: documents in it become Markdown that agents read. */
const FOLDER = '/data/uploads';

/** Uploads a file of any size under a name of its own. `onProgress` is told the share that was sent, of 100. */
async function attach(workspace: string, {path: name, file}: Chosen, onProgress: (percent: number) => void): Promise<Attached> {
  const stamp = new Date().toISOString().replace(/\D/g, '').slice(2, 17);
  const path = `${FOLDER}/${stamp}-${name.replace(/[^\w.\-]+/g, '_').slice(-80)}`;
  const made = await upload(hub, {workspace, path}, file, {onProgress: (sent, size) => onProgress(Math.floor(100 * sent / Math.max(size, 1)))});
  return {id: made.file_id, path: made.path};
}

const idsOf = (files: readonly Attached[]): string => files.map(file => file.id).join();

export function Composer({workspace, draftKey, placeholder, choices = '', onSend, isRunning, onStop, disabled, children, autoFocus}: {
  workspace: string;
  draftKey: string;
  placeholder: string;
  /** What else is sent along, as a text: with other choices it is another message. */
  choices?: string;
  onSend: (text: string, files: Attached[], way: Way, idempotencyKey: string) => Promise<unknown>;
  isRunning: boolean;
  onStop?: () => void;
  disabled?: boolean | undefined;
  children?: ReactNode;
  autoFocus?: boolean;
}) {
  const [text, setText] = useDraft(draftKey);
  const [keptFiles, setKeptFiles] = useDraft(`${draftKey}/files`);
  const files: Attached[] = keptFiles === '' ? [] : JSON.parse(keptFiles);
  /** The text and the files as they are when a request has been answered. */
  const latest = useRef({text, files});
  latest.current = {text, files};
  const keepFiles = (now: Attached[]) => {
    latest.current.files = now;
    setKeptFiles(now.length === 0 ? '' : JSON.stringify(now));
  };
  /** Uploads go one after the other: the last one that was asked for is the last one that ends. */
  const uploads = useRef<Promise<unknown>>(Promise.resolve());
  const area = useRef<HTMLTextAreaElement>(null);
  const picker = useRef<HTMLInputElement>(null);
  const [isOver, setOver] = useState(false);
  const [progress, setProgress] = useState<string>();
  /** Whether a message is on its way: the mutation tells of it a moment later, and a second press of a key may come before. */
  const isSending = useRef(false);
  const sending = useMutation({
    mutationFn: ({way, sent, along, key}: Message) => onSend(sent.trim(), along, way, key),
    onSuccess: (_, {sent, along}) => {
      // Words that were written and files that were attached meanwhile stay.
      const now = latest.current.text;
      setText(now.startsWith(sent) ? now.slice(sent.length).trimStart() : now);
      keepFiles(latest.current.files.filter(file => !along.some(({id}) => id === file.id)));
      area.current?.focus();
    },
    onSettled: () => { isSending.current = false; },
  });
  const attachAll = async (all: Chosen[]) => {
    for (const [at, one] of all.entries()) {
      const place = all.length > 1 ? ` (${at + 1} of ${all.length})` : '';
      const tell = (percent: number) => setProgress(`${nameOf(one.path)}${place}, ${percent} %`);
      tell(0);
      const made = await attach(workspace, one, tell);
      keepFiles([...latest.current.files, made]);
    }
  };
  const attaching = useMutation({
    mutationFn: (chosen: Chosen[] | Promise<Chosen[]>) => {
      const ended = Promise.all([chosen, uploads.current]).then(([all]) => attachAll(all));
      uploads.current = ended.catch(() => undefined);
      return ended;
    },
    onSettled: () => setProgress(undefined),
  });
  useAtRisk(attaching.isPending);
  useEffect(() => {
    const element = area.current;
    if (!element) return;
    element.style.height = 'auto';
    element.style.height = `${Math.min(element.scrollHeight, 240)}px`;
  }, [text]);
  const isReady = text.trim() !== '' && !sending.isPending && !attaching.isPending && !disabled;
  const send = (way: Way) => {
    if (!isReady || isSending.current) return;
    const last = sending.isError ? sending.variables : undefined;
    const isSame = last?.way === way && last.sent.trim() === text.trim() && last.choices === choices && idsOf(last.along) === idsOf(files);
    isSending.current = true;
    sending.mutate({way, sent: text, along: files, choices, key: isSame ? last.key : uuid()});
  };
  /** Sends the message that failed once more. Words that were added meanwhile stay. With other files or choices it is another message. */
  const again = (last: Message) => {
    if (last.choices !== choices || !last.along.every(({id}) => files.some(file => file.id === id))) return send(last.way);
    if (isSending.current || disabled) return;
    isSending.current = true;
    sending.mutate(last);
  };
  const type = (now: string) => {
    setText(now);
    // Other words are another message, also when they are those that failed once more, later.
    if (sending.isError && !now.startsWith(sending.variables.sent)) sending.reset();
  };
  const typed = (event: KeyboardEvent) => {
    if (event.key !== 'Enter' || event.shiftKey || event.nativeEvent.isComposing) return;
    event.preventDefault();
    send('enqueue');
  };
  const pasted = (event: ClipboardEvent) => {
    if (event.clipboardData.files.length === 0) return;
    event.preventDefault();
    attaching.mutate(chosenIn(event.clipboardData.files));
  };
  const dropped = (event: DragEvent) => {
    event.preventDefault();
    setOver(false);
    if (event.dataTransfer.files.length > 0 && !disabled) attaching.mutate(droppedIn(event.dataTransfer));
  };
  return (
    <div className="composer-frame">
      {sending.isError && <Failure error={sending.error} retry={() => again(sending.variables)} />}
      {attaching.isError && <Failure error={attaching.error} />}
      <div
        className={`composer ${isOver ? 'over' : ''}`}
        onDragOver={event => { event.preventDefault(); setOver(true); }} onDragLeave={() => setOver(false)} onDrop={dropped}
      >
        {(files.length > 0 || attaching.isPending) && (
          <ul className="chips">
            {files.map(file => (
              <li key={file.id} className="chip">
                <Icon name="file" size={15} />{nameOf(file.path)}
                <IconButton label={`Remove ${nameOf(file.path)}`} icon="close" onClick={() => keepFiles(files.filter(other => other.id !== file.id))} />
              </li>
            ))}
            {attaching.isPending && <li className="chip pulsing"><span role="status">Uploading {progress ?? '…'}</span></li>}
          </ul>
        )}
        <textarea
          ref={area} rows={1} dir="auto" value={text} placeholder={placeholder} aria-label={placeholder} autoFocus={autoFocus} disabled={disabled}
          onChange={event => type(event.target.value)} onKeyDown={typed} onPaste={pasted}
        />
        <div className="composer-foot">
          <IconButton label="Attach files" icon="clip" onClick={() => picker.current?.click()} disabled={disabled} />
          <input ref={picker} type="file" multiple hidden onChange={event => { attaching.mutate(chosenIn(event.target.files)); event.target.value = ''; }} />
          {children}
          <span className="spacer" />
          {isRunning && text.trim() !== '' && <>
            <Button look="quiet" className="small" title="The agent reads this in the turn that runs" onClick={() => send('steer')} disabled={!isReady || files.length > 0}>Steer</Button>
            <Button look="quiet" className="small" title="Stops the turn and sends this" onClick={() => send('interrupt')} disabled={!isReady}>Interrupt</Button>
          </>}
          {isRunning && onStop && <IconButton label="Stop" icon="stop" className="stop" onClick={onStop} />}
          <IconButton label={isRunning ? 'Send after this turn' : 'Send'} icon="send" className="send" onClick={() => send('enqueue')} disabled={!isReady} />
        </div>
      </div>
    </div>
  );
}
