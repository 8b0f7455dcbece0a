import { callForResponse } from './call.ts'

/** How long a browser may take to start saving a file in memory. */
const keptMillis = 60_000

/** Fetches a file and lets the browser save it, so that errors are shown like any other. The gateway names it. */
export async function download(address: string): Promise<void> {
  const response = await callForResponse(address)
  saveFile(await response.blob(), fileName(response.headers.get('content-disposition') ?? ''))
}

/** The exact name if there is one, which may have any characters. */
function fileName(disposition: string): string {
  const [, exact] = /filename\*=UTF-8''([^;]+)/.exec(disposition) ?? []
  return exact === undefined ? (/filename="([^"]+)"/.exec(disposition)?.[1] ?? '') : decodeURIComponent(exact)
}

export function saveFile(content: Blob, name: string): void {
  const url = URL.createObjectURL(content)
  const link = document.createElement('a')
  link.href = url
  link.download = name
  link.click()
  setTimeout(() => URL.revokeObjectURL(url), keptMillis)
}
