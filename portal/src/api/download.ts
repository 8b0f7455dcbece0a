import { callForResponse } from './call.ts'

/** How long a browser may take to start saving a file in memory. */
const keptMillis = 60_000

/** Fetches a file and lets the browser save it, so that errors are shown like any other. */
export async function download(address: string, fileName: string): Promise<void> {
  const response = await callForResponse(address)
  saveFile(await response.blob(), fileName)
}

export function saveFile(content: Blob, fileName: string): void {
  const url = URL.createObjectURL(content)
  const link = document.createElement('a')
  link.href = url
  link.download = fileName
  link.click()
  setTimeout(() => URL.revokeObjectURL(url), keptMillis)
}
