/** What stands in a picture beside the chart, so that it can be understood where it is taken to. */
export interface Caption {
  readonly title: string
  /** From when to when. */
  readonly range: string
  /** Its lines by name and colour, where there are several. */
  readonly key: readonly { readonly name: string; readonly color: string }[]
  /** Whose numbers they are, and when the picture was made. */
  readonly source: string
}

const MARGIN = 16
const LINE = 22
const FONT = 'system-ui, sans-serif'

function write(context: CanvasRenderingContext2D, caption: Caption, height: number, text: string): void {
  context.textBaseline = 'top'
  context.fillStyle = text
  context.font = `600 16px ${FONT}`
  context.fillText(caption.title, MARGIN, MARGIN)
  context.font = `13px ${FONT}`
  context.fillText(caption.range, MARGIN, MARGIN + LINE)
  context.fillText(caption.source, MARGIN, height - MARGIN - 13)
  let left = MARGIN
  for (const { name, color } of caption.key) {
    const top = MARGIN + 2 * LINE
    context.fillStyle = color
    context.fillRect(left, top + 6, 14, 3)
    context.fillStyle = text
    context.fillText(name, left + 20, top)
    left += 20 + context.measureText(name).width + MARGIN
  }
}

/** A chart with its caption as PNG, as sharp as it is on the screen: `scale` is the canvas's pixels for one of the page's. */
export function toPicture(
  chart: HTMLCanvasElement,
  caption: Caption,
  colors: { readonly back: string; readonly text: string },
  scale: number,
): Promise<Blob> {
  const above = MARGIN + (caption.key.length > 0 ? 3 : 2) * LINE
  const height = above + chart.height / scale + LINE + MARGIN
  const picture = document.createElement('canvas')
  picture.width = chart.width + 2 * MARGIN * scale
  picture.height = height * scale
  const context = picture.getContext('2d')
  if (context === null) throw new Error('the browser gives no canvas to draw on')
  context.fillStyle = colors.back
  context.fillRect(0, 0, picture.width, picture.height)
  context.drawImage(chart, MARGIN * scale, above * scale)
  context.scale(scale, scale)
  write(context, caption, height, colors.text)
  return new Promise((resolve, reject) =>
    picture.toBlob((blob) => (blob === null ? reject(new Error('the browser made no picture')) : resolve(blob))),
  )
}
