import type {Row} from '../../../../../clients/typescript/src/fold/chat.ts';

/** The fold of a chat is that of the client, whose hook for React has it, too. */
export * from '../../../../../clients/typescript/src/fold/chat.ts';

/** Whether a chat is one of several people: of these, such as its owner and its reader, and of the authors of the rows that are here. */
export function isShared(rows: readonly Row[], others: readonly (string | undefined)[]): boolean {
  const people = new Set<string>(others.filter(one => one !== undefined));
  for (const row of rows) if (row.kind === 'user' && row.author !== undefined) people.add(row.author);
  return people.size > 1;
}
