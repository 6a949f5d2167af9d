/** The parts that all pages are made of. */
import {useEffect, useRef, useSyncExternalStore, type ButtonHTMLAttributes, type ReactNode} from 'react';
import {told} from './hub.ts';
import {Icon, type IconName} from './icons.tsx';

type ButtonProps = ButtonHTMLAttributes<HTMLButtonElement> & {look?: 'primary' | 'quiet' | 'danger' | 'plain'; icon?: IconName};

export function Button({look = 'plain', icon, children, className = '', ...rest}: ButtonProps) {
  return (
    <button type="button" {...rest} className={`button ${look} ${className}`}>
      {icon && <Icon name={icon} />}
      {children}
    </button>
  );
}

/** A button that is an icon alone; `label` is its name. */
export function IconButton({label, icon, ...rest}: ButtonProps & {label: string; icon: IconName}) {
  return (
    <button type="button" aria-label={label} title={label} {...rest} className={`button icon-only ${rest.className ?? ''}`}>
      <Icon name={icon} />
    </button>
  );
}

export function Empty({icon, title, children}: {icon: IconName; title: string; children?: ReactNode}) {
  return (
    <div className="empty">
      <span className="empty-icon"><Icon name={icon} size={26} /></span>
      <h2>{title}</h2>
      {children}
    </div>
  );
}

/** The labels of a chat or a run, where it has any. */
export function Labels({labels = {}}: {labels?: Record<string, string> | undefined}) {
  const pairs = Object.entries(labels);
  return pairs.length > 0 && (
    <section>
      <h2>Labels</h2>
      <dl className="facts">{pairs.map(([key, value]) => <div key={key}><dt dir="auto">{key}</dt><dd dir="auto">{value}</dd></div>)}</dl>
    </section>
  );
}

export function Loading({what}: {what: string}) {
  return (
    <div className="loading" role="status">
      <span className="spinner" aria-hidden="true" />
      <span>Loading {what}…</span>
    </div>
  );
}

/** An error with what to do; a lack of rights looks different, since trying again does not help. */
export function Failure({error, retry}: {error: unknown; retry?: (() => void) | undefined}) {
  const {title, hint, code} = told(error);
  const noRight = code === 'FORBIDDEN';
  return (
    <div className={`failure ${noRight ? 'no-right' : ''}`} role="alert">
      <Icon name={noRight ? 'lock' : 'warn'} />
      <div>
        <p className="failure-title">{noRight ? 'You do not have the right to do this' : title}</p>
        {noRight && <p>{title}</p>}
        {hint && <p>{hint}</p>}
        <p className="code">{code}</p>
      </div>
      {retry && !noRight && <Button onClick={retry}>Try again</Button>}
    </div>
  );
}

export function Badge({tone = 'neutral', children}: {tone?: 'neutral' | 'good' | 'bad' | 'busy' | 'ask'; children: ReactNode}) {
  return <span className={`badge ${tone}`}>{children}</span>;
}

/**
 * A modal dialog of the platform: it keeps the focus inside, and Escape closes it. So does a click beside it, unless that would lose what it shows. The first
 * field of a dialog has the focus, and the element that opened the dialog has it afterwards.
 */
export function Dialog({title, children, onClose, wide, isKept = false}: {title: string; children: ReactNode; onClose: () => void; wide?: boolean; isKept?: boolean}) {
  const element = useRef<HTMLDialogElement>(null);
  // A browser also sends a click to the dialog for a selection that begins inside and ends beside it.
  const isBeside = useRef(false);
  const opener = useRef<Element>(null);
  useEffect(() => {
    const dialog = element.current;
    if (dialog && !dialog.open) {
      opener.current = document.activeElement;
      dialog.showModal();
      // The platform chooses the first button, which closes the dialog. `autoFocus` comes before the dialog is shown, and does nothing.
      dialog.querySelector<HTMLElement>('input, textarea, select')?.focus();
    }
    // The platform gives the focus back to the opener when a dialog closes, and not when its element is removed.
    return () => {
      if (opener.current instanceof HTMLElement) opener.current.focus();
    };
  }, []);
  return (
    <dialog
      ref={element} className={wide ? 'wide' : ''} aria-label={title}
      onClose={onClose} onPointerDown={event => { isBeside.current = event.target === element.current; }}
      onClick={event => !isKept && isBeside.current && event.target === element.current && element.current.close()}
    >
      <div className="dialog-body">
        <header className="dialog-head">
          <h2>{title}</h2>
          <IconButton label="Close" icon="close" onClick={() => element.current?.close()} />
        </header>
        {children}
      </div>
    </dialog>
  );
}

/** Asks before something is gone for good. The button with the name `label` does it. */
export function Confirm({title, label, acting, onConfirm, onClose, children}: {
  title: string; label: string; acting: {isPending: boolean; isError: boolean; error: unknown}; onConfirm: () => void; onClose: () => void; children: ReactNode;
}) {
  return (
    <Dialog title={title} onClose={onClose}>
      {children}
      {acting.isError && <Failure error={acting.error} />}
      <div className="dialog-foot"><Button look="danger" onClick={onConfirm} disabled={acting.isPending}>{label}</Button></div>
    </Dialog>
  );
}

/** The button below a list that reads its next page, as long as there is one. In its place is the reason why a page could not be read. */
export function More({list, label = 'More'}: {
  list: {hasNextPage: boolean; isFetchingNextPage: boolean; isFetchNextPageError: boolean; error: unknown; readOn: () => void}; label?: string;
}) {
  const read = list.readOn;
  if (!list.hasNextPage) return null;
  if (list.isFetchNextPageError) return <Failure error={list.error} retry={read} />;
  return <Button look="quiet" onClick={read} disabled={list.isFetchingNextPage}>{label}</Button>;
}

export function Field({label, hint, children}: {label: string; hint?: string | undefined; children: ReactNode}) {
  return (
    <label className="field">
      <span className="field-label">{label}</span>
      {children}
      {hint && <span className="field-hint">{hint}</span>}
    </label>
  );
}

const UNITS: [Intl.RelativeTimeFormatUnit, number][] = [['day', 86_400], ['hour', 3_600], ['minute', 60]];
const relative = new Intl.RelativeTimeFormat('en', {numeric: 'auto', style: 'short'});

/** The time, which moves on every 20 s for all who show one. */
const clock = {now: Date.now(), listeners: new Set<() => void>()};
setInterval(() => {
  clock.now = Date.now();
  clock.listeners.forEach(listen => listen());
}, 20_000);
const useNow = (): number => useSyncExternalStore(listen => {
  clock.listeners.add(listen);
  return () => clock.listeners.delete(listen);
}, () => clock.now);

export function Ago({at}: {at: string}) {
  useNow();
  const seconds = (Date.parse(at) - Date.now()) / 1000;
  const [unit, length] = UNITS.find(([, length]) => Math.abs(seconds) >= length) ?? ['second', 1];
  const text = Math.abs(seconds) < 45 ? 'now' : Math.abs(seconds) > 6 * 86_400
    ? new Date(at).toLocaleDateString('en', {day: 'numeric', month: 'short', year: 'numeric'})
    : relative.format(Math.round(seconds / length), unit);
  return <time dateTime={at} title={new Date(at).toLocaleString()}>{text}</time>;
}

export {bytes, count, counted, duration, money} from './counts.ts';
export const nameOf = (path: string): string => path.split('/').findLast(part => part !== '') ?? '/';
