/** Where assistants ask, and how: what answers there is loaded when the first one does. */
export const MCP_PATH = '/mcp'
export const MCP_METHODS = 'POST, OPTIONS'
