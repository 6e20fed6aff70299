/** Path and methods of the MCP endpoint. Its handler is loaded on the first request. */
export const MCP_PATH = '/mcp'
export const MCP_METHODS = 'POST, OPTIONS'
