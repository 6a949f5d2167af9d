import react from '@vitejs/plugin-react';
import {fileURLToPath} from 'node:url';
import {defineConfig} from 'vite';

const at = (path: string) => fileURLToPath(new URL(path, import.meta.url));
const hub = process.env.BUILDSCALE_URL ?? 'http://127.0.0.1:8686';

export default defineConfig({
  base: './',
  plugins: [react()],
  resolve: {alias: {buildscale: at('../../../clients/typescript/src/index.ts')}},
  build: {
    outDir: at('../dist'),
    // The folder keeps its .gitignore: scripts/console empties it.
    emptyOutDir: false,
    target: 'es2022',
    modulePreload: {polyfill: false},
    reportCompressedSize: false,
    assetsInlineLimit: 0,
    // The editor is the longest part, and is loaded when a file is opened; compress.mjs bounds the first load.
    chunkSizeWarningLimit: 800,
  },
  server: {
    fs: {allow: [at('.'), at('../../../clients')]},
    proxy: Object.fromEntries(['/api', '/health', '/ready', '/metrics', '/openapi.json', '/.well-known'].map(path => [path, {
      target: hub,
      // The hub refuses pages of other origins; in development this page is one.
      configure: (proxy: {on(event: 'proxyReq', listen: (request: {removeHeader(name: string): void}) => void): void}) =>
        proxy.on('proxyReq', request => ['origin', 'referer', 'sec-fetch-site', 'sec-fetch-mode'].forEach(name => request.removeHeader(name))),
    }])),
  },
});
