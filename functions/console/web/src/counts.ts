/** Numbers in words, as the folds of the client have them. It names no part of the page, so that a fold is still loaded without it. */
export * from '../../../../clients/typescript/src/fold/counts.ts';
