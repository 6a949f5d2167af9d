/** The icons of the console: strokes on a grid of 20, drawn here so that nothing is loaded. */
const PATHS = {
  chat: 'M4 5.5A1.5 1.5 0 0 1 5.5 4h9A1.5 1.5 0 0 1 16 5.5v6a1.5 1.5 0 0 1-1.5 1.5H9l-3.5 3v-3A1.5 1.5 0 0 1 4 11.5z',
  file: 'M6 3h5l4 4v9.5a.5.5 0 0 1-.5.5h-8.5a.5.5 0 0 1-.5-.5v-13A.5.5 0 0 1 6 3zM11 3v4h4',
  folder: 'M3 6a1 1 0 0 1 1-1h3.5l1.5 2H16a1 1 0 0 1 1 1v6.5a1 1 0 0 1-1 1H4a1 1 0 0 1-1-1z',
  flow: 'M5 4.5h4v4H5zM11 11.5h4v4h-4zM7 8.5v3a2 2 0 0 0 2 2h2',
  chart: 'M4 16.5h12M6 14V9.5M10 14V5M14 14v-6',
  pulse: 'M3 10.5h3l2-5 3.5 9 2-4H17',
  search: 'M9 14A5 5 0 1 0 9 4a5 5 0 0 0 0 10zM12.7 12.7 16.5 16.5',
  plus: 'M10 4.5v11M4.5 10h11',
  send: 'M10 16V4.5M5.5 9 10 4.5 14.5 9',
  stop: 'M6 6h8v8H6z',
  down: 'M5.5 8 10 12.5 14.5 8',
  right: 'M8 5.5 12.5 10 8 14.5',
  close: 'M5.5 5.5l9 9M14.5 5.5l-9 9',
  menu: 'M3.5 6h13M3.5 10h13M3.5 14h13',
  check: 'M4.5 10.5 8.5 14.5 15.5 6',
  warn: 'M10 4 17 16H3zM10 8.5v3.5M10 14v.2',
  clip: 'M14.5 9.5 9.6 14.4a3 3 0 0 1-4.3-4.3L10.8 4.7a2 2 0 0 1 2.9 2.9L8.3 13',
  sun: 'M10 13.5a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7zM10 2.5v1.5M10 16v1.5M2.5 10H4M16 10h1.5M4.7 4.7l1 1M14.3 14.3l1 1M15.3 4.7l-1 1M5.7 14.3l-1 1',
  moon: 'M16 11.5A6.5 6.5 0 0 1 8.5 4 6.5 6.5 0 1 0 16 11.5z',
  screen: 'M3.5 4.5h13v8.5h-13zM8 16h4M10 13v3',
  tag: 'M4 4h6l6.5 6.5-6 6L4 10zM7.5 7.5h.1',
  trash: 'M4.5 6h11M8 6V4.5h4V6M6 6l.7 10h6.6L14 6',
  clock: 'M10 16.5a6.5 6.5 0 1 0 0-13 6.5 6.5 0 0 0 0 13zM10 6.5V10l2.5 1.5',
  tool: 'M12.5 4a3.5 3.5 0 0 0-3.2 4.9L4 14.2 5.8 16l5.3-5.3A3.5 3.5 0 0 0 15.7 6.5L13.5 8.6 11.4 6.5 13.6 4.2A3.5 3.5 0 0 0 12.5 4z',
  thought: 'M10 4a5 5 0 0 0-3 9v2h6v-2a5 5 0 0 0-3-9zM8 17h4',
  ask: 'M7.5 7.5a2.5 2.5 0 1 1 3.5 2.3c-.7.3-1 .8-1 1.7M10 14v.2M10 17a7 7 0 1 0 0-14 7 7 0 0 0 0 14z',
  lock: 'M5.5 9h9v7h-9zM7.5 9V7a2.5 2.5 0 0 1 5 0v2',
  out: 'M11 4h-6v12h6M9 10h8M14 7l3 3-3 3',
  play: 'M7 5l8 5-8 5z',
  pause: 'M7 5v10M13 5v10',
  save: 'M4 4h9.5L16 6.5V16H4zM7 4v4h5V4M7 16v-4.5h6V16',
  history: 'M4 10a6 6 0 1 0 2-4.5L4 7.5M4 4v3.5h3.5M10 7v3.5l2 1.5',
  person: 'M10 10a3 3 0 1 0 0-6 3 3 0 0 0 0 6zM4.5 16.5a5.5 5.5 0 0 1 11 0',
  more: 'M5 10h.1M10 10h.1M15 10h.1',
  hook: 'M8 9.5 5.5 14M8 9.5a3 3 0 1 1 4.6-1.3M5.5 16a2 2 0 1 0 0-4M12 8l2.5 4.2M14.5 16a2.6 2.6 0 1 0-1.6-4.6M6.5 14H12',
  terminal: 'M3.5 4.5h13v11h-13zM6 8l2.5 2L6 12M10 12.5h4',
  key: 'M10 13a3 3 0 1 1-6 0 3 3 0 0 1 6 0zM9.2 10.8l6.3-6.3M12.8 7.2l2 2',
  edit: 'M4 16l.8-3.2L13 4.6 15.4 7 7.2 15.2z',
} as const;
export type IconName = keyof typeof PATHS;

export function Icon({name, size = 18}: {name: IconName; size?: number}) {
  return (
    <svg className="icon" width={size} height={size} viewBox="0 0 20 20" aria-hidden="true" focusable="false">
      <path d={PATHS[name]} />
    </svg>
  );
}
