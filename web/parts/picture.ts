/** What stands in a picture beside the chart, so that it can be understood where it is taken to. */
export interface Caption {
  /** What nobody must miss, above all else. */
  readonly notice: string | undefined
  readonly title: string
  /** From when to when. */
  readonly range: string
  /** Its lines by name and colour, where there are several. */
  readonly key: readonly { readonly name: string; readonly color: string }[]
  /** Whose numbers they are, and when the picture was made. */
  readonly source: string
}

/** What a caption says whatever is drawn. */
export type Origin = Pick<Caption, 'notice' | 'source'>

const MARGIN = 16
const LINE = 22
const SIZE = 13
const FAMILY = 'system-ui, sans-serif'
const FONT = `${SIZE}px ${FAMILY}`
const BOLD = `600 ${SIZE}px ${FAMILY}`
const TITLE = `600 16px ${FAMILY}`
/** The dash before a name in the key, with what is between them. */
const DASH = 20

/** Where something is written, from the left and from the top of its block, in the page's pixels. */
interface Written {
  readonly text: string
  readonly font: string
  readonly left: number
  readonly top: number
  /** Of the dash before it. */
  readonly color?: string
}

type Measure = (text: string, font: string) => number

/** A text in lines that are no wider than there is room; a word that is wider by itself is parted. */
function wrap(text: string, room: number, measure: (text: string) => number): string[] {
  const lines: string[] = []
  let line = ''
  for (const word of text.split(' ')) {
    const longer = line === '' ? word : `${line} ${word}`
    if (measure(longer) <= room) {
      line = longer
      continue
    }
    if (line !== '') lines.push(line)
    line = ''
    for (const character of word) {
      if (line !== '' && measure(line + character) > room) {
        lines.push(line)
        line = ''
      }
      line += character
    }
  }
  return [...lines, line]
}

/** The names of the lines side by side, as many as there is room for. */
function layKey(key: Caption['key'], room: number, measure: Measure): Written[] {
  let [left, top] = [0, 0]
  return key.flatMap(({ name, color }) => {
    const lines = wrap(name, room - DASH, (text) => measure(text, FONT))
    const width = DASH + Math.max(...lines.map((line) => measure(line, FONT)))
    if (left > 0 && left + width > room) [left, top] = [0, top + LINE]
    const written = lines.map((text, at) => ({
      ...{ text, font: FONT, left: left + DASH, top: top + at * LINE },
      ...(at === 0 ? { color } : {}),
    }))
    top += (lines.length - 1) * LINE
    left += width + MARGIN
    return written
  })
}

/** What is above the chart and below it, each with its height. */
function lay({ notice, title, range, key, source }: Caption, room: number, measure: Measure) {
  const layText = (text: string | undefined, font: string): Written[] =>
    text === undefined
      ? []
      : wrap(text, room, (part) => measure(part, font)).map((line, at) => ({
          ...{ text: line, font, left: 0, top: at * LINE },
        }))
  const stack = (...blocks: Written[][]) => {
    let height = 0
    const written = blocks.flatMap((block) => {
      const moved = block.map((one) => ({ ...one, top: one.top + height }))
      height += block.length === 0 ? 0 : Math.max(...block.map(({ top }) => top)) + LINE
      return moved
    })
    return { written, height }
  }
  return {
    above: stack(layText(notice, BOLD), layText(title, TITLE), layText(range, FONT), layKey(key, room, measure)),
    below: stack(layText(source, FONT)),
  }
}

function write(context: CanvasRenderingContext2D, written: readonly Written[], top: number, color: string): void {
  context.textBaseline = 'top'
  for (const one of written) {
    const [x, y] = [MARGIN + one.left, top + one.top]
    if (one.color !== undefined) {
      context.fillStyle = one.color
      context.fillRect(x - DASH, y + 6, 14, 3)
    }
    context.fillStyle = color
    context.font = one.font
    context.fillText(one.text, x, y)
  }
}

/** A chart with its caption as PNG, as sharp as it is on the screen: `scale` is the canvas's pixels for one of the page's. */
export function toPicture(
  chart: HTMLCanvasElement,
  caption: Caption,
  colors: { readonly back: string; readonly text: string },
  scale: number,
): Promise<Blob> {
  const picture = document.createElement('canvas')
  const context = picture.getContext('2d')
  if (context === null) throw new Error('the browser gives no canvas to draw on')
  const [width, height] = [chart.width / scale, chart.height / scale]
  const { above, below } = lay(caption, width, (text, font) => {
    context.font = font
    return context.measureText(text).width
  })
  const chartTop = MARGIN + above.height
  picture.width = (width + 2 * MARGIN) * scale
  picture.height = (chartTop + height + below.height + MARGIN) * scale
  context.fillStyle = colors.back
  context.fillRect(0, 0, picture.width, picture.height)
  context.drawImage(chart, MARGIN * scale, chartTop * scale)
  context.scale(scale, scale)
  write(context, above.written, MARGIN, colors.text)
  write(context, below.written, chartTop + height + LINE - SIZE, colors.text)
  return new Promise((resolve, reject) =>
    picture.toBlob((blob) => (blob === null ? reject(new Error('the browser made no picture')) : resolve(blob))),
  )
}
