import { useEffect } from 'preact/hooks'

/** Puts the source, the time and the page number in the margins of each printed page. */
export function useMargins(source: string, time: string): void {
  useEffect(() => {
    const sheet = new CSSStyleSheet()
    const style = 'font: 7pt sans-serif; color: #5a6372'
    sheet.replaceSync(`@page {
      margin: 14mm 12mm 16mm;
      @bottom-left { ${style}; content: ${JSON.stringify(`Source: ${source}`)} }
      @bottom-right { ${style}; content: ${JSON.stringify(`${time}, page `)} counter(page) " of " counter(pages) }
    }`)
    document.adoptedStyleSheets.push(sheet)
    return () => {
      document.adoptedStyleSheets = document.adoptedStyleSheets.filter((one) => one !== sheet)
    }
  }, [source, time])
}
