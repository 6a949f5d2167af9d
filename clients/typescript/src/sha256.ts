/** SHA-256 (FIPS 180-4) of a content that comes in pieces. `crypto.subtle` takes it whole, and is missing on pages that came over plain HTTP. */
export class Sha256 {
  readonly #state = new Int32Array([0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19]);
  readonly #block = new Uint8Array(64);
  readonly #view = new DataView(this.#block.buffer);
  readonly #words = new Int32Array(64);
  #used = 0;
  #length = 0;

  update(piece: Uint8Array): this {
    this.#length += piece.length;
    for (let at = 0; at < piece.length;) {
      const taken = Math.min(64 - this.#used, piece.length - at);
      this.#block.set(piece.subarray(at, at + taken), this.#used);
      this.#used += taken;
      at += taken;
      if (this.#used === 64) this.#compress();
    }
    return this;
  }

  /** The digest, in hexadecimal digits. Nothing can be added afterwards. */
  hex(): string {
    this.#block[this.#used++] = 0x80;
    if (this.#used > 56) {
      this.#block.fill(0, this.#used);
      this.#compress();
    }
    this.#block.fill(0, this.#used);
    this.#view.setUint32(56, Math.floor(this.#length / 2 ** 29));
    this.#view.setUint32(60, (this.#length * 8) % 2 ** 32);
    this.#compress();
    return [...this.#state].map(word => (word >>> 0).toString(16).padStart(8, '0')).join('');
  }

  #compress(): void {
    const words = this.#words;
    for (let at = 0; at < 16; at++) words[at] = this.#view.getInt32(4 * at);
    for (let at = 16; at < 64; at++) {
      const [early, late] = [words[at - 15]!, words[at - 2]!];
      const s0 = turn(early, 7) ^ turn(early, 18) ^ (early >>> 3);
      const s1 = turn(late, 17) ^ turn(late, 19) ^ (late >>> 10);
      words[at] = (((words[at - 16]! + s0) | 0) + ((words[at - 7]! + s1) | 0)) | 0;
    }
    let [a, b, c, d, e, f, g, h] = this.#state as unknown as [number, number, number, number, number, number, number, number];
    for (let at = 0; at < 64; at++) {
      const chosen = (h + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25))) | 0;
      const first = (((chosen + ((e & f) ^ (~e & g))) | 0) + ((ROUNDS[at]! + words[at]!) | 0)) | 0;
      const second = ((turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + ((a & b) ^ (a & c) ^ (b & c))) | 0;
      h = g;
      g = f;
      f = e;
      e = (d + first) | 0;
      d = c;
      c = b;
      b = a;
      a = (first + second) | 0;
    }
    [a, b, c, d, e, f, g, h].forEach((word, at) => { this.#state[at]! += word; });
    this.#used = 0;
  }
}

const turn = (word: number, bits: number): number => (word >>> bits) | (word << (32 - bits));

/** The first 32 bits of the fractional parts of the cube roots of the first 64 primes. */
const ROUNDS = Int32Array.from(primes(64), prime => {
  const root = Math.cbrt(prime);
  return (root - Math.floor(root)) * 2 ** 32;
});

function primes(count: number): number[] {
  const found: number[] = [];
  for (let next = 2; found.length < count; next++) if (found.every(prime => next % prime !== 0)) found.push(next);
  return found;
}
