import {useState} from 'react';
import {Button} from './ui.tsx';

export function CopyButton({text, label = 'Copy'}: {text: string; label?: string}) {
  const [told, setTold] = useState<string>();
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setTold('Copied');
      setTimeout(() => setTold(undefined), 1500);
    } catch {
      // A page over plain HTTP has no clipboard.
      setTold('Select the text to copy it');
    }
  };
  return <Button look="quiet" className="small" onClick={() => void copy()}>{told ?? label}</Button>;
}
