import type { Tool } from './define-tool.ts'
import { describeTool } from './tools/describe.ts'
import { profileTool } from './tools/profile.ts'
import { queryTool } from './tools/query.ts'
import { searchTool } from './tools/search.ts'
import { seriesTool } from './tools/series.ts'
import { statusTool } from './tools/status.ts'
import { traceTool } from './tools/trace.ts'

/** All tools. A new tool is one file and one line here; a test limits all descriptions together to 3,400 tokens. */
export const tools: readonly Tool[] = [
  searchTool,
  describeTool,
  queryTool,
  seriesTool,
  profileTool,
  statusTool,
  traceTool,
]
