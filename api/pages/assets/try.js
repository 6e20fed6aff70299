// Sends the requests of the reference's forms and shows the responses. Without this script a form sends nothing.

const MOST_SHOWN = 20_000
const SHOWN_HEADERS = ['Content-Type', 'X-Data-As-Of', 'X-Total-Count', 'X-Series-Points', 'X-Series-Missing', 'Link']

/** @param {HTMLFormElement} form */
function toUrl(form) {
  // A parameter named `dataset` hides the property of this name.
  let path = form.getAttribute('data-path') ?? ''
  const query = new URLSearchParams()
  for (const [name, value] of new FormData(form)) {
    if (value === '') continue
    if (path.includes(`{${name}}`)) path = path.replace(`{${name}}`, encodeURIComponent(String(value)))
    else query.append(name, String(value))
  }
  return new URL(query.size === 0 ? path : `${path}?${query}`, document.baseURI).href
}

/** @param {string} tag @param {string} text @param {string} [name] */
function element(tag, text, name) {
  const made = document.createElement(tag)
  made.textContent = text
  if (name !== undefined) made.className = name
  return made
}

/** Formats a body for display. @param {Response} response @param {string} url */
async function toShown(response, url) {
  const type = response.headers.get('Content-Type') ?? ''
  if (type.startsWith('image/') && response.ok) {
    const image = new Image()
    image.alt = 'The answer as an image'
    image.src = url
    return image
  }
  if (!/json|csv|text/.test(type)) return element('p', `${(await response.blob()).size} bytes, to be saved as a file.`)
  const body = await response.text()
  const text = type.includes('ndjson') || !type.includes('json') ? body : JSON.stringify(JSON.parse(body), null, 2)
  return element('pre', text.length > MOST_SHOWN ? `${text.slice(0, MOST_SHOWN)}\n… and more` : text)
}

/** @param {HTMLFormElement} form */
async function send(form) {
  const output = /** @type {HTMLOutputElement} */ (form.querySelector('output'))
  const url = toUrl(form)
  output.replaceChildren(element('p', 'Waiting for the answer …'))
  try {
    const response = await fetch(url)
    const shown = await toShown(response, url)
    const link = document.createElement('a')
    link.href = url
    const { pathname, search } = new URL(url)
    link.textContent = `GET ${pathname}${search}`
    const head = document.createElement('p')
    head.append(element('strong', String(response.status), response.ok ? 'good' : 'bad'), ' ', link)
    const headers = SHOWN_HEADERS.flatMap((name) => {
      const value = response.headers.get(name)
      return value === null ? [] : [`${name}: ${value}`]
    })
    output.replaceChildren(head, element('pre', headers.join('\n')), shown)
  } catch (error) {
    output.replaceChildren(element('p', `No answer: ${error instanceof Error ? error.message : error}`, 'bad'))
  }
}

for (const form of document.querySelectorAll('form.try')) {
  form.addEventListener('submit', (event) => {
    event.preventDefault()
    send(/** @type {HTMLFormElement} */ (form))
  })
  const button = /** @type {HTMLButtonElement} */ (form.querySelector('button'))
  button.disabled = false
}
