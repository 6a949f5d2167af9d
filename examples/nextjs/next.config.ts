import type {NextConfig} from 'next';

const config: NextConfig = {
  // This folder is a project of its own, whatever lies above it.
  turbopack: {root: import.meta.dirname},
  devIndicators: false,
};
export default config;
