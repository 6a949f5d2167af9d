/** The arguments of a call: commands as commands, edits and contents as differences, all else as fields. */
import {Code} from '../markdown.tsx';
import {href, partsOf} from '../router.ts';

type Fields = Record<string, unknown>;

export function Preview({tool, args, workspace}: {tool: string; args: unknown; workspace: string}) {
  if (typeof args !== 'object' || args === null) return <Code text={String(args)} language="" />;
  const fields = args as Fields;
  const path = typeof fields.path === 'string' ? fields.path : undefined;
  const at = path && <p className="preview-path"><a href={href(workspace, 'files', partsOf(path))}>{path}</a></p>;
  if (tool === 'exec' && typeof fields.command === 'string') {
    const {command, ...rest} = fields;
    return <><Code text={command} language="command" />{Object.keys(rest).length > 0 && <Rest fields={rest} />}</>;
  }
  if (tool === 'edit' && Array.isArray(fields.edits)) {
    const edits = fields.edits as {old?: string; new?: string}[];
    return <>{at}{edits.map((edit, key) => <Differences key={key} before={edit.old ?? ''} after={edit.new ?? ''} />)}</>;
  }
  if (tool === 'write' && typeof fields.content === 'string') return <>{at}<Differences before="" after={fields.content} /></>;
  return Object.keys(fields).length === 0 ? null : <Rest fields={fields} />;
}

function Rest({fields}: {fields: Fields}) {
  return (
    <dl className="fields">
      {Object.entries(fields).map(([name, value]) => (
        <div key={name}><dt>{name}</dt><dd>{typeof value === 'string' ? value : JSON.stringify(value)}</dd></div>
      ))}
    </dl>
  );
}

/** Lines that go and lines that come. The lines in common at both ends stay out of it. */
export function Differences({before, after}: {before: string; after: string}) {
  const [old, made] = [lines(before), lines(after)];
  let start = 0;
  while (start < old.length && start < made.length && old[start] === made[start]) start++;
  let end = 0;
  while (end < old.length - start && end < made.length - start && old[old.length - 1 - end] === made[made.length - 1 - end]) end++;
  const parts: [string, string[]][] = [
    [' ', old.slice(Math.max(0, start - 2), start)],
    ['-', old.slice(start, old.length - end)],
    ['+', made.slice(start, made.length - end)],
    [' ', old.slice(old.length - end, old.length - end + 2)],
  ];
  return <DiffLines lines={parts.flatMap(([sign, texts]) => texts.map(text => sign + text))} />;
}

const lines = (text: string): string[] => text === '' ? [] : text.replace(/\n$/, '').split('\n');

/** A unified difference, one class per line, and its sign as text: colour alone says nothing. */
export function DiffLines({lines}: {lines: string[]}) {
  return (
    <pre className="diff" tabIndex={0} aria-label="Differences">
      {lines.map((line, key) => (
        <span key={key} className={line.startsWith('@@') || /^(---|\+\+\+) /.test(line) ? 'hunk' : line.startsWith('+') ? 'added' : line.startsWith('-') ? 'removed' : ''}>{`${line}\n`}</span>
      ))}
    </pre>
  );
}
