import { render } from 'preact'
import { App, isPage } from './app.tsx'
import { followChanges } from './live.ts'
import { EmbedPage } from './pages/embed.tsx'
import { closeMenus } from './parts/menus.ts'
import { followLinks, isEmbed } from './place.ts'
import './styles/shell.css'
import './styles/parts.css'
import './styles/chart.css'
import './styles/print.css'

const root = document.getElementById('app')
if (root === null) throw new Error('the document has no place for the page')
if (isEmbed) render(<EmbedPage />, root)
else {
  // In an embedded chart, the browser opens links in a new tab.
  followLinks(isPage)
  render(<App />, root)
}
closeMenus()
followChanges({ hasStream: !isEmbed })
