/** The fold of a chat is that of the client, whose hook for React has it, too. */
export * from '../../../../../clients/typescript/src/fold/chat.ts';
