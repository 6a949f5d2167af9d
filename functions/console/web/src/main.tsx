import {QueryClientProvider} from '@tanstack/react-query';
import {StrictMode} from 'react';
import {createRoot} from 'react-dom/client';
import {App} from './app.tsx';
import {ErrorBoundary} from './boundary.tsx';
import {queries} from './hub.ts';
import {finish} from './login.ts';
import {applyTheme, remembered} from './store.ts';
import './styles/base.css';
import './styles/shell.css';
import './styles/chat.css';
import './styles/pages.css';

applyTheme(remembered('theme'));
await finish();
createRoot(document.getElementById('root')!).render(
  <StrictMode>
    <QueryClientProvider client={queries}>
      <ErrorBoundary><App /></ErrorBoundary>
    </QueryClientProvider>
  </StrictMode>,
);
