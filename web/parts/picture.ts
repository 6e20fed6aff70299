/** The text of a picture around the chart, so that the picture is understandable without the page. */
export interface Caption {
  /** A prominent notice at the top. */
  readonly notice: string | undefined
  readonly title: string
  /** The time range shown. */
  readonly range: string
  /** Names and colours of the lines, if there are several. */
  readonly key: readonly { readonly name: string; readonly color: string }[]
  /** The source of the numbers, and when the picture was made. */
  readonly source: string
}

/** The parts of a caption that do not depend on the chart. */
export type Origin = Pick<Caption, 'notice' | 'source'>

const MARGIN = 16
const LINE = 22
const SIZE = 13
const FAMILY = 'system-ui, sans-serif'
const FONT = `${SIZE}px ${FAMILY}`
const BOLD = `600 ${SIZE}px ${FAMILY}`
const TITLE = `600 16px ${FAMILY}`
/** Width of the dash before a name in the key, including the space between them. */
const DASH = 20

/** A positioned text: offset from the left and from the top of its block, in CSS pixels. */
interface Written {
  readonly text: string
  readonly font: string
  readonly left: number
  readonly top: number
  /** Colour of the dash before it. */
  readonly color?: string
}

type Measure = (text: string, font: string) => number

/** Wraps a text to a width; a longer word is split. */
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

/** Lays out the names of the lines in rows. */
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

/** Lays out the texts above and below the chart, with their heights. */
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

/** A chart with its caption as PNG, at screen resolution: `scale` is canvas pixels per CSS pixel. */
export function toPicture(
  chart: HTMLCanvasElement,
  caption: Caption,
  colors: { readonly back: string; readonly text: string },
  scale: number,
): Promise<Blob> {
  const picture = document.createElement('canvas')
  const context = picture.getContext('2d')
  if (context === null) throw new Error('the browser has no canvas')
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
