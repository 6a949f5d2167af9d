/**
 * Markdown of agents and files as elements of React. Nothing is ever parsed as HTML: tags in the text are shown as text, links lead only to
 * http, https and mailto, and images become links, so that a text cannot make the browser tell a stranger that it was read.
 *
 * The parser takes cubic time for marks that are opened and never closed, and a call per block that is in another one. So both are bounded: beyond that
 * a text is shown as it is.
 */
import {Lexer, type Token, type Tokens} from 'marked';
import {cloneElement, isValidElement, memo, useMemo, type ReactNode} from 'react';
import {href, partsOf} from './router.ts';
import {CopyButton} from './copy.tsx';

/** The time for the marks within the blocks of a text, in milliseconds, and the most of them in a block. */
const BUDGET = 300;
const MOST_MARKS = 1000;
/** The deepest that blocks and marks are in one another. */
const DEEPEST = 40;
/** A line that begins more blocks than that, and is no rule of dashes or stars. */
const NESTED = new RegExp(`^(?![ \\t]*([-*])(?:[ \\t]*\\1)*[ \\t]*$)[ \\t]*(?:>[ \\t]*|(?:[-*+]|\\d{1,9}[.)])[ \\t]+){${DEEPEST}}`, 'm');

class BoundedLexer extends Lexer {
  /** The end of the budget, which begins with the first marks. */
  #until = 0;

  override inlineTokens(src: string, tokens: Token[] = []): Token[] {
    this.#until ||= performance.now() + BUDGET;
    const marks = src.match(/[[\]*_~`<]/g)?.length ?? 0;
    if (marks <= MOST_MARKS && performance.now() < this.#until) return super.inlineTokens(src, tokens);
    tokens.push({type: 'escape', raw: src, text: src});
    return tokens;
  }
}

/** The tokens in a token: those of a text, of the items of a list, and of the cells of a table. */
function inside(token: object): object[] {
  const {tokens, items, header, rows} = token as Record<string, unknown>;
  return [tokens, items, header, rows].filter(Array.isArray).flat(2) as object[];
}

/** The blocks of a text; undefined for one that no browser could draw. */
function blocksOf(text: string): Token[] | undefined {
  if (NESTED.test(text)) return undefined;
  try {
    const blocks = new BoundedLexer().lex(text);
    let level: object[] = blocks;
    for (let depth = 0; level.length > 0; depth++) {
      if (depth > DEEPEST) return undefined;
      level = level.flatMap(inside);
    }
    return blocks;
  } catch {
    return undefined;
  }
}

export const Markdown = memo(function Markdown({text, workspace}: {text: string; workspace?: string | undefined}) {
  const blocks = useMemo(() => blocksOf(text), [text]);
  if (!blocks) return <div className="markdown"><pre tabIndex={0}>{text}</pre></div>;
  return <div className="markdown">{blocks.map((block, at) => <Block key={at} raw={block.raw} token={block} workspace={workspace} />)}</div>;
});

/** A block is drawn again only when its text has changed: while an answer streams in, that is the last one. */
const Block = memo(
  ({token, workspace}: {raw: string; token: Token; workspace?: string | undefined}): ReactNode => {
    const drawn = block(token, 0, workspace);
    // Its first letter says from which side a block is read.
    return isValidElement<{dir?: string}>(drawn) && token.type !== 'code' ? cloneElement(drawn, {dir: 'auto'}) : drawn;
  },
  (before, after) => before.raw === after.raw && before.workspace === after.workspace,
);

function block(token: Token, key: number, workspace?: string): ReactNode {
  switch (token.type) {
    case 'space': return null;
    case 'hr': return <hr key={key} />;
    case 'heading': {
      // Headings of a text stand below those of the page.
      const Tag = `h${Math.min((token as Tokens.Heading).depth + 2, 6)}` as 'h3';
      return <Tag key={key}>{inline(token.tokens, workspace)}</Tag>;
    }
    case 'paragraph': return <p key={key}>{inline(token.tokens, workspace)}</p>;
    case 'text': return token.tokens ? <span key={key}>{inline(token.tokens, workspace)}</span> : <span key={key}>{token.text}</span>;
    case 'blockquote': return <blockquote key={key}>{(token.tokens ?? []).map((one, at) => block(one, at, workspace))}</blockquote>;
    case 'code': return <Code key={key} text={token.text as string} language={(token as Tokens.Code).lang ?? ''} />;
    case 'list': {
      const list = token as Tokens.List;
      const items = list.items.map((item, at) => (
        <li key={at} className={item.task ? 'task' : undefined}>
          {item.task && <input type="checkbox" checked={item.checked ?? false} readOnly disabled aria-label={item.checked ? 'done' : 'open'} />}
          {item.tokens.map((one, at) => block(one, at, workspace))}
        </li>
      ));
      return list.ordered ? <ol key={key} start={Number(list.start) || 1}>{items}</ol> : <ul key={key}>{items}</ul>;
    }
    case 'table': {
      const table = token as Tokens.Table;
      return (
        <div key={key} className="table-scroll" tabIndex={0} role="region" aria-label="Table">
          <table>
            <thead><tr>{table.header.map((cell, at) => <th key={at}>{inline(cell.tokens, workspace)}</th>)}</tr></thead>
            <tbody>{table.rows.map((row, at) => <tr key={at}>{row.map((cell, at) => <td key={at}>{inline(cell.tokens, workspace)}</td>)}</tr>)}</tbody>
          </table>
        </div>
      );
    }
    default: return <p key={key}>{token.raw}</p>;
  }
}

function inline(tokens: Token[] | undefined, workspace?: string): ReactNode[] {
  return (tokens ?? []).map((token, key) => {
    switch (token.type) {
      case 'strong': return <strong key={key}>{inline(token.tokens, workspace)}</strong>;
      case 'em': return <em key={key}>{inline(token.tokens, workspace)}</em>;
      case 'del': return <del key={key}>{inline(token.tokens, workspace)}</del>;
      case 'codespan': return <CodeSpan key={key} text={token.text as string} workspace={workspace} />;
      case 'br': return <br key={key} />;
      case 'escape': return token.text as string;
      case 'link': {
        const to = safe((token as Tokens.Link).href);
        const children = inline(token.tokens, workspace);
        return to ? <a key={key} href={to} target="_blank" rel="noopener noreferrer">{children}</a> : <span key={key}>{children}</span>;
      }
      case 'image': {
        const {href: from, text} = token as Tokens.Image;
        const to = safe(from);
        const name = text || 'image';
        return to ? <a key={key} href={to} target="_blank" rel="noopener noreferrer">{`[${name}]`}</a> : <span key={key}>{`[${name}]`}</span>;
      }
      case 'text': return token.tokens ? <span key={key}>{inline(token.tokens, workspace)}</span> : unescaped(token.text as string);
      default: return token.raw;
    }
  });
}

/** A path of the workspace in backticks leads to its file. */
function CodeSpan({text, workspace}: {text: string; workspace?: string | undefined}) {
  const plain = unescaped(text);
  const isPath = workspace !== undefined && /^\/(projects|data|system|users|tasks|content)\/[^\s*?]+$/.test(plain);
  return isPath ? <a href={href(workspace, 'files', partsOf(plain))}><code>{plain}</code></a> : <code>{plain}</code>;
}

/** The parser escapes characters for HTML, which this is not. */
const ENTITIES: Record<string, string> = {'&amp;': '&', '&lt;': '<', '&gt;': '>', '&quot;': '"', '&#39;': "'"};
const unescaped = (text: string): string => text.replace(/&(?:amp|lt|gt|quot|#39);/g, entity => ENTITIES[entity] ?? entity);

/** The address, if it is of a kind that does nothing but lead somewhere. */
export function safe(address: string): string | undefined {
  try {
    const url = new URL(address);
    return ['http:', 'https:', 'mailto:'].includes(url.protocol) ? url.href : undefined;
  } catch {
    return undefined;
  }
}

export function Code({text, language}: {text: string; language: string}) {
  return (
    <figure className="code-block">
      <figcaption>
        <span>{language || 'text'}</span>
        <CopyButton text={text} />
      </figcaption>
      <pre tabIndex={0}><code>{text}</code></pre>
    </figure>
  );
}
