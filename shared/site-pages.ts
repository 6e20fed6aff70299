/** The pages in the header of the site, as paths relative to its root, and their names. */
export const SITE_PAGES = [
  ['./', 'Overview'],
  ['tokens', 'Tokens'],
  ['daos', 'DAOs'],
  ['governance', 'Governance'],
  ['treasuries', 'Treasuries'],
  ['index', 'Index'],
  ['compare', 'Compare'],
  ['baskets', 'Baskets'],
  ['freshness', 'Data'],
  ['alerts', 'Alerts'],
  ['sql', 'SQL'],
] as const
