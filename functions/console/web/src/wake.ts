let waking = new AbortController();

/** A signal that ends the pause of a stream: it aborts when the network is back, or when the person asks for it. All pauses share one. */
export const wake = (): AbortSignal => waking.signal;

export function reconnectNow(): void {
  const ended = waking;
  waking = new AbortController();
  ended.abort();
}
addEventListener('online', reconnectNow);
