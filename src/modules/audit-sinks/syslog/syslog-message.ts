/** Who sends, as RFC 5424 names it. */
export interface SyslogOrigin {
  readonly facility: number
  readonly hostName: string
  readonly appName: string
  readonly processId: number
}

const notice = 5
const warning = 4
/** Marks the text as UTF-8 (RFC 5424, 6.4). */
const byteOrderMark = '\ufeff'

/** One message of RFC 5424 in the octet-counting frame of RFC 6587 and 5425. */
export function syslogFrame(
  { facility, hostName, appName, processId }: SyslogOrigin,
  time: Date,
  text: string,
): string {
  const severity = text.includes('"action":"refuse"') ? warning : notice
  const header = `<${facility * 8 + severity}>1 ${time.toISOString()} ${printable(hostName, 255)} ${printable(appName, 48)}`
  const message = `${header} ${processId} audit - ${byteOrderMark}${text}`
  return `${Buffer.byteLength(message)} ${message}`
}

/** Header fields hold printable ASCII without spaces; a missing value is a hyphen. */
const printable = (text: string, length: number): string => text.replace(/[^\x21-\x7e]/g, '').slice(0, length) || '-'
