/** One block of an event stream, its data as text. */
export interface Block {
  id: string;
  event: string;
  data: string;
}

/**
 * Parses Server-Sent Events as the HTML standard has them (section 9.2.6, "Interpreting an event stream"): texts in, blocks out.
 * A block without data is none for the caller, but its `id` counts: `lastId` has it.
 */
export class Parser {
  /** The id after which a stream goes on: that of the last block that has ended. */
  lastId = '';
  /** The pause before the next connection that the server asked for, in milliseconds. */
  retryMs: number | undefined;
  #id = '';
  /** The pieces of the line that has not ended: each is looked through once, however long the line becomes. */
  #line: string[] = [];
  #isAfterCr = false;
  #event = '';
  #data: string[] = [];

  push(text: string): Block[] {
    if (text === '') return [];
    // The second half of CR LF.
    const more = this.#isAfterCr && text.startsWith('\n') ? text.slice(1) : text;
    this.#isAfterCr = more.endsWith('\r');
    const [first = '', ...lines] = more.split(/\r\n|\n|\r/);
    this.#line.push(first);
    const rest = lines.pop();
    if (rest === undefined) return [];
    const ended = this.#line.join('');
    this.#line = [rest];
    const blocks: Block[] = [];
    for (const line of [ended, ...lines]) {
      if (line !== '') {
        this.#field(line);
        continue;
      }
      // Not before: of a block that is cut off, the client has nothing.
      this.lastId = this.#id;
      if (this.#data.length > 0) blocks.push({id: this.lastId, event: this.#event || 'message', data: this.#data.join('\n')});
      this.#event = '';
      this.#data = [];
    }
    return blocks;
  }

  #field(line: string): void {
    const colon = line.indexOf(':');
    if (colon === 0) return;
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
    if (name === 'data') this.#data.push(value);
    else if (name === 'event') this.#event = value;
    else if (name === 'id' && !value.includes('\0')) this.#id = value;
    else if (name === 'retry' && /^\d+$/.test(value)) this.retryMs = Number(value);
  }
}
