/** The field for messages: a draft that survives a reload, files by button, paste and drop, and the choice of model and mode. */
import {useMutation} from '@tanstack/react-query';
import {useEffect, useRef, useState, type ClipboardEvent, type DragEvent, type KeyboardEvent, type ReactNode} from 'react';
import {hub} from '../hub.ts';
import {Icon} from '../icons.tsx';
import {useDraft} from '../store.ts';
import {Button, Failure, IconButton, nameOf} from '../ui.tsx';

export interface Attached {
  id: string;
  path: string;
}

/** The folder for what people attach: documents in it become Markdown that agents read. */
const FOLDER = '/data/uploads';

async function upload(workspace: string, file: File): Promise<Attached> {
  const stamp = new Date().toISOString().replace(/\D/g, '').slice(2, 14);
  const path = `${FOLDER}/${stamp}-${file.name.replace(/[^\w.\-]+/g, '_').slice(-80)}`;
  const made = await hub.put('/api/v1/workspaces/{workspace_id}/files/by-path/content', {
    path: {workspace_id: workspace}, query: {path}, body: file, headers: {'if-none-match': '*'},
  });
  return {id: made.file_id, path: made.path};
}

export function Composer({workspace, draftKey, placeholder, onSend, isRunning, onStop, disabled, children, autoFocus}: {
  workspace: string;
  draftKey: string;
  placeholder: string;
  onSend: (text: string, files: Attached[], interrupts?: boolean) => Promise<unknown>;
  isRunning: boolean;
  onStop?: () => void;
  disabled?: boolean | undefined;
  children?: ReactNode;
  autoFocus?: boolean;
}) {
  const [text, setText] = useDraft(draftKey);
  const [keptFiles, setKeptFiles] = useDraft(`${draftKey}/files`);
  const files: Attached[] = keptFiles === '' ? [] : JSON.parse(keptFiles);
  const area = useRef<HTMLTextAreaElement>(null);
  const picker = useRef<HTMLInputElement>(null);
  const [isOver, setOver] = useState(false);
  const sending = useMutation({
    mutationFn: (interrupts: boolean) => onSend(text.trim(), files, interrupts),
    onSuccess: () => {
      setText('');
      setKeptFiles('');
      area.current?.focus();
    },
  });
  const attaching = useMutation({
    mutationFn: (chosen: File[]) => Promise.all(chosen.map(file => upload(workspace, file))),
    onSuccess: made => setKeptFiles(JSON.stringify([...files, ...made])),
  });
  useEffect(() => {
    const element = area.current;
    if (!element) return;
    element.style.height = 'auto';
    element.style.height = `${Math.min(element.scrollHeight, 240)}px`;
  }, [text]);
  const isReady = text.trim() !== '' && !sending.isPending && !attaching.isPending && !disabled;
  const send = () => {
    if (isReady) sending.mutate(false);
  };
  const typed = (event: KeyboardEvent) => {
    if (event.key !== 'Enter' || event.shiftKey || event.nativeEvent.isComposing) return;
    event.preventDefault();
    send();
  };
  const pasted = (event: ClipboardEvent) => {
    const chosen = [...event.clipboardData.files];
    if (chosen.length === 0) return;
    event.preventDefault();
    attaching.mutate(chosen);
  };
  const dropped = (event: DragEvent) => {
    event.preventDefault();
    setOver(false);
    const chosen = [...event.dataTransfer.files];
    if (chosen.length > 0) attaching.mutate(chosen);
  };
  return (
    <div className="composer-frame">
      {sending.isError && <Failure error={sending.error} retry={send} />}
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
                <IconButton label={`Remove ${nameOf(file.path)}`} icon="close" onClick={() => setKeptFiles(JSON.stringify(files.filter(other => other.id !== file.id)))} />
              </li>
            ))}
            {attaching.isPending && <li className="chip pulsing">Uploading…</li>}
          </ul>
        )}
        <textarea
          ref={area} rows={1} value={text} placeholder={placeholder} aria-label={placeholder} autoFocus={autoFocus} disabled={disabled}
          onChange={event => setText(event.target.value)} onKeyDown={typed} onPaste={pasted}
        />
        <div className="composer-foot">
          <IconButton label="Attach files" icon="clip" onClick={() => picker.current?.click()} disabled={disabled} />
          <input ref={picker} type="file" multiple hidden onChange={event => { attaching.mutate([...(event.target.files ?? [])]); event.target.value = ''; }} />
          {children}
          <span className="spacer" />
          {isRunning && text.trim() !== '' && <Button look="quiet" className="small" title="Stops the turn and sends this" onClick={() => sending.mutate(true)} disabled={!isReady}>Interrupt</Button>}
          {isRunning && onStop && <IconButton label="Stop" icon="stop" className="stop" onClick={onStop} />}
          <IconButton label={isRunning ? 'Send after this turn' : 'Send'} icon="send" className="send" onClick={send} disabled={!isReady} />
        </div>
      </div>
    </div>
  );
}
