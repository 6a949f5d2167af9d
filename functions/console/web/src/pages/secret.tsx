import type {ReactNode} from 'react';
import {CopyButton} from '../copy.tsx';
import {useAtRisk} from '../store.ts';
import {Dialog} from '../ui.tsx';

/** A secret that the hub shows once. It is in the state of the page alone: no draft and no cache has it. */
export function Secret({title, name, secret, onClose, children}: {title: string; name: string; secret: string; onClose: () => void; children?: ReactNode}) {
  useAtRisk(true);
  return (
    <Dialog title={title} onClose={onClose} isKept>
      <p>Copy it now: it is shown this once, and kept nowhere.</p>
      {children}
      <pre className="json" tabIndex={0} aria-label={name}>{secret}</pre>
      <div className="dialog-foot"><CopyButton text={secret} /></div>
    </Dialog>
  );
}
