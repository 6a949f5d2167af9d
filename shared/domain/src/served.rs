//! The names of tools of servers, of HTTP tools, of tools in code and of the web, as agents call them; and the bounds of the files that declare tools.

/// The start of the names of tools of servers that speak the Model Context Protocol.
pub const SERVED_PREFIX: &str = "mcp__";
/// The start of the names of HTTP tools.
pub const HTTP_PREFIX: &str = "http__";
/// The start of the names of tools in code, which programs of the workspace's people run.
pub const CODE_PREFIX: &str = "code__";
/// The tool that reads a page of the web.
pub const WEB_FETCH: &str = "web_fetch";
/// The tool that searches the web.
pub const WEB_SEARCH: &str = "web_search";

/// The most tools that a workspace or a flow declares in files.
pub const MOST_DECLARED: usize = 64;
/// A file that declares a tool is shorter than this, in bytes.
pub const MAX_DECLARATION: usize = 64 * 1024;
