// Compresses the built files ahead of time: beside each file its brotli and gzip forms, where they are shorter.
// Prints the size of the first load: the page, its scripts and its styles, without the parts that are loaded when they are needed.
import {readdirSync, readFileSync, writeFileSync} from 'node:fs';
import {join} from 'node:path';
import {fileURLToPath} from 'node:url';
import {brotliCompressSync, constants, gzipSync} from 'node:zlib';

/** The most that the first load may be, in bytes of brotli. */
const MOST = 300 * 1024;
const dist = fileURLToPath(new URL('../dist', import.meta.url));
const sizes = {};
for (const entry of readdirSync(dist, {recursive: true, withFileTypes: true})) {
  const path = join(entry.parentPath ?? entry.path, entry.name);
  if (!entry.isFile() || entry.name.startsWith('.') || /\.(br|gz)$/.test(entry.name)) continue;
  const plain = readFileSync(path);
  const forms = {
    br: brotliCompressSync(plain, {params: {[constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: plain.length}}),
    gz: gzipSync(plain, {level: 9}),
  };
  sizes[entry.name] = Math.min(plain.length, forms.br.length);
  for (const [extension, form] of Object.entries(forms)) if (form.length < plain.length) writeFileSync(`${path}.${extension}`, form);
}
const page = readFileSync(join(dist, 'index.html'), 'utf8');
const first = sizes['index.html'] + [...page.matchAll(/assets\/([^"]+)"/g)].reduce((sum, [, name]) => sum + (sizes[name] ?? 0), 0);
console.log(`First load: ${(first / 1024).toFixed(1)} KiB of brotli, of at most ${MOST / 1024}.`);
if (first > MOST) process.exit(1);
