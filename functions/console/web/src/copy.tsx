import {useState} from 'react';
import {Button} from './ui.tsx';

export function CopyButton({text, label = 'Copy'}: {text: string; label?: string}) {
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setCopied(true);
      setTimeout(() => setCopied(false), 1500);
    } catch {
      // A page over plain HTTP has no clipboard: the text can be selected.
    }
  };
  return <Button look="quiet" className="small" onClick={() => void copy()}>{copied ? 'Copied' : label}</Button>;
}
