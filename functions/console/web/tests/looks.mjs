// Pictures of states: how they are taken so that machines agree on them, and how two are compared.
import {mkdir, readFile, writeFile} from 'node:fs/promises';
import {createRequire} from 'node:module';

const FOLDER = new URL('./looks/', import.meta.url);
const FONT = await readFile(createRequire(import.meta.url).resolve('@fontsource-variable/inter/files/inter-latin-wght-normal.woff2'));
/** One font for all machines. */
export const TYPEFACE = `@font-face { font-family: Look; font-weight: 100 900; src: url(data:font/woff2;base64,${FONT.toString('base64')}) format('woff2'); }`;
/** That font, and nothing that is another one on each run: times, ids, amounts of time. */
const STYLE = `
  ${TYPEFACE}
  :root:root { --font: Look; --mono: Look; caret-color: transparent; }
  time, .bars, .bars-axis, .changing { visibility: hidden !important; }
  /* "now" and "2 min. ago" take the same room: none. */
  time { font-size: 0 !important; }
`;
/** Half of the size: the pictures are small, and the edges of letters count for less. */
const SCALE = 0.5;
export const LOOKS = ['light', 'dark'].flatMap(theme => [[1280, 800], [820, 900], [390, 780]].map(([width, height]) => ({theme, width, height})));

/** How long the pictures of all states together may wait for what comes late, in milliseconds. */
let patience = 60_000;

/** A context for pictures. It leaves the policy of the page aside, since the style of the pictures is put into it. */
export const contextFor = (browser, options = {}) => browser.newContext({viewport: {width: 1280, height: 800}, deviceScaleFactor: SCALE, reducedMotion: 'reduce', bypassCSP: true, ...options});

export async function settle(page, changing = []) {
  await page.addStyleTag({content: STYLE + (changing.length > 0 ? `${changing.join(', ')} { visibility: hidden !important; }` : '')});
  await page.evaluate(() => document.fonts.load('16px Look').then(() => document.fonts.ready));
}

/** The picture in this look, and how far it is from the one that is kept; with BLESS=1 it is kept from now on. */
export async function compared(page, judge, name, {theme, width, height}) {
  await page.emulateMedia({colorScheme: theme, reducedMotion: 'reduce'});
  await page.setViewportSize({width, height});
  let taken = process.env.BLESS === '1' ? await still(page) : await picture(page);
  const file = new URL(`${name}-${theme}-${width}.png`, FOLDER);
  const kept = await readFile(file).catch(() => undefined);
  if (process.env.BLESS === '1') {
    // A picture that is as good as the one before stays as it is, so that a change shows what changed.
    if (kept && await differs(judge, kept, taken) === 0) return undefined;
    await mkdir(FOLDER, {recursive: true});
    await writeFile(file, taken);
    return undefined;
  }
  if (!kept) return `${file.pathname} is not there; BLESS=1 scripts/console --test makes it`;
  let share = await differs(judge, kept, taken);
  // A graph that fits itself into its new frame takes some frames, and an answer of the hub may still be on its way.
  const began = performance.now();
  const waited = () => performance.now() - began;
  for (let again = 0; share > MOST && (again < 4 || waited() < patience); again++) {
    taken = await still(page);
    share = await differs(judge, kept, taken);
  }
  patience -= waited();
  if (share <= MOST) return undefined;
  const place = new URL(`../../../../../target/looks/${name}-${theme}-${width}.png`, FOLDER);
  await mkdir(new URL('.', place), {recursive: true});
  await writeFile(place, taken);
  return `${name}, ${theme}, ${width} pixels wide: ${(100 * share).toFixed(1)} % of it looks different. It looks like ${place.pathname} now.`;
}

async function picture(page) {
  await page.evaluate(() => new Promise(resolve => requestAnimationFrame(() => requestAnimationFrame(resolve))));
  return page.screenshot({animations: 'disabled', caret: 'hide'});
}

/** A picture of a page that does not change any more: two in a row are the same, or ten were taken. */
export async function still(page) {
  let before;
  for (let count = 0; count < 10; count++) {
    const taken = await picture(page);
    if (before?.equals(taken)) return taken;
    before = taken;
  }
  return before;
}

/** The share of blocks that may differ. */
export const MOST = 0.006;

/** The share of blocks of 8 pixels whose mean colour differs. Compared by a browser, which reads pictures anyway. */
export function differs(judge, one, other) {
  return judge.evaluate(async pictures => {
    const read = async text => {
      const picture = await createImageBitmap(await (await fetch(`data:image/png;base64,${text}`)).blob());
      const canvas = new OffscreenCanvas(picture.width, picture.height);
      const pen = canvas.getContext('2d');
      pen.drawImage(picture, 0, 0);
      return {width: picture.width, height: picture.height, data: pen.getImageData(0, 0, picture.width, picture.height).data};
    };
    const [a, b] = [await read(pictures[0]), await read(pictures[1])];
    if (a.width !== b.width || a.height !== b.height) return 1;
    const SIDE = 8;
    let blocks = 0, different = 0;
    for (let y = 0; y < a.height; y += SIDE) {
      for (let x = 0; x < a.width; x += SIDE) {
        const sums = [0, 0, 0];
        let count = 0;
        for (let dy = 0; dy < SIDE && y + dy < a.height; dy++) {
          for (let dx = 0; dx < SIDE && x + dx < a.width; dx++) {
            const at = 4 * ((y + dy) * a.width + x + dx);
            for (let channel = 0; channel < 3; channel++) sums[channel] += a.data[at + channel] - b.data[at + channel];
            count++;
          }
        }
        blocks++;
        if (sums.some(sum => Math.abs(sum / count) > 10)) different++;
      }
    }
    return different / blocks;
  }, [one.toString('base64'), other.toString('base64')]);
}
