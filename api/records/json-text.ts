/** The end of a JSON value that begins at `at`: a string, an object, a list, or a word. */
function endOf(text: string, at: number): number {
  const opening = text[at]
  if (opening === '"') return endOfString(text, at)
  if (opening !== '{' && opening !== '[') {
    let end = at
    while (end < text.length && !',}]'.includes(text[end] as string)) end++
    return end
  }
  let depth = 0
  for (let end = at; ; end++) {
    const char = text[end]
    if (char === '"') end = endOfString(text, end) - 1
    else if (char === '{' || char === '[') depth++
    else if (char === '}' || char === ']') depth--
    if (depth === 0) return end + 1
  }
}

function endOfString(text: string, at: number): number {
  for (let end = text.indexOf('"', at + 1); ; end = text.indexOf('"', end + 1)) {
    let slashes = 0
    while (text[end - 1 - slashes] === '\\') slashes++
    if (slashes % 2 === 0) return end + 1
  }
}

/**
 * The members of a JSON object written without spaces, by name, each as the text of its value: numbers keep their
 * digits, which parsing and serializing would not preserve.
 */
export function readMembers(text: string): Map<string, string> {
  const members = new Map<string, string>()
  for (let at = 1; at < text.length - 1; ) {
    const nameEnd = endOfString(text, at)
    const valueEnd = endOf(text, nameEnd + 1)
    members.set(JSON.parse(text.slice(at, nameEnd)) as string, text.slice(nameEnd + 1, valueEnd))
    at = valueEnd + 1
  }
  return members
}
