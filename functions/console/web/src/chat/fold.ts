import type {Row} from '../../../../../clients/typescript/src/fold/chat.ts';

/** The fold of a chat is that of the client, whose hook for React has it, too. */
export * from '../../../../../clients/typescript/src/fold/chat.ts';

/** Whether a chat is one of several people: of these, such as its owner, its reader and the authors of messages that wait, and of the authors of its rows. */
export function isShared(rows: readonly Row[], others: readonly (string | null | undefined)[]): boolean {
  const people = new Set<string>(others.filter(one => one != null));
  for (const row of rows) if (row.kind === 'user' && row.author !== undefined) people.add(row.author);
  return people.size > 1;
}
