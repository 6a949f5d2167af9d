import {Component, type ReactNode} from 'react';
import {Button, Empty} from './ui.tsx';

/** A fault of a page takes nothing else along: drafts are kept, and the rest of the console works. */
export class ErrorBoundary extends Component<{children: ReactNode; resetKey?: string}, {error?: Error | undefined}> {
  override state: {error?: Error | undefined} = {};

  static getDerivedStateFromError(error: Error) {
    return {error};
  }

  override componentDidUpdate(before: {resetKey?: string}) {
    if (before.resetKey !== this.props.resetKey && this.state.error) this.setState({error: undefined});
  }

  override render() {
    const {error} = this.state;
    if (!error) return this.props.children;
    // A part of the page that is not there: most likely the hub was updated since the page was loaded.
    const isOld = /dynamically imported module|Importing a module/.test(error.message);
    return (
      <Empty icon="warn" title={isOld ? 'There is a newer console' : 'This page has a fault'}>
        <p>{isOld ? 'The hub was updated since this page was loaded.' : error.message}</p>
        <Button look="primary" onClick={() => location.reload()}>Load it again</Button>
      </Empty>
    );
  }
}
