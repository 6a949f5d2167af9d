/** The fold of a task is that of the client, whose hook for React has it, too. */
export * from '../../../../../clients/typescript/src/fold/task.ts';
