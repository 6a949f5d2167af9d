/** Numbers in words. It names no other module, so that a fold which uses it is still loaded without the page. */

export const count = (value: number): string => new Intl.NumberFormat('en', {notation: value >= 10_000 ? 'compact' : 'standard', maximumFractionDigits: 1}).format(value);
/** A number with its noun: `1 fault`, `2 faults`. */
export const counted = (value: number, noun: string): string => `${count(value)} ${noun}${value === 1 ? '' : 's'}`;
