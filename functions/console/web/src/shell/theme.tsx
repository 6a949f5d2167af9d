import type {IconName} from '../icons.tsx';
import {applyTheme, useRemembered, type Theme} from '../store.ts';
import {IconButton} from '../ui.tsx';

const NEXT: Record<Theme, [Theme, IconName, string]> = {
  system: ['light', 'screen', 'Theme: as the system has it'],
  light: ['dark', 'sun', 'Theme: light'],
  dark: ['system', 'moon', 'Theme: dark'],
};

export function ThemeSwitch() {
  const [kept, keep] = useRemembered('theme');
  const theme = (kept ?? 'system') as Theme;
  const [next, icon, label] = NEXT[theme] ?? NEXT.system;
  return <IconButton label={label} icon={icon} onClick={() => { keep(next); applyTheme(next); }} />;
}
