/** Numbers in words, as the folds of the client have them. It names no part of the page, so that a fold is still loaded without it. */
export * from '../../../../clients/typescript/src/fold/counts.ts';

export const money = (value: number): string => `$${value.toFixed(value > 0 && value < 1 ? 4 : 2)}`;

export function bytes(value: number): string {
  if (value < 1024) return `${value} B`;
  const power = Math.min(Math.floor(Math.log2(value) / 10), 4);
  return `${(value / 2 ** (10 * power)).toFixed(1)} ${['', 'KiB', 'MiB', 'GiB', 'TiB'][power]}`;
}

/** A time in milliseconds, in its two largest units. It is rounded before it is divided, so that no 60 s are left beside minutes. */
export function duration(ms: number): string {
  if (ms < 999.5) return `${Math.round(ms)} ms`;
  if (ms < 59_950) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  const minutes = Math.round(seconds / 60);
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}
