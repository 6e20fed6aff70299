import { render } from 'preact'
import { App, isPage } from './app.tsx'
import { followChanges } from './live.ts'
import { followLinks } from './place.ts'
import './styles/shell.css'
import './styles/parts.css'
import './styles/chart.css'

const root = document.getElementById('app')
if (root === null) throw new Error('the document has no place for the page')
followLinks(isPage)
render(<App />, root)
followChanges()
