'use client';
/** Hooks for React: a chat and a task as the state of a component, folded from the streams of the client. */
export {useChat, type ChatOptions, type ChatStatus, type ChatView, type Permission, type Question} from './chat.ts';
export {useTask, type NodeQuestions, type TaskOptions, type TaskStatus, type TaskView} from './task.ts';
export type {ChangedFile, Plan, Row, Transcript, Usage} from '../fold/chat.ts';
export type {NodeState, Run} from '../fold/task.ts';
