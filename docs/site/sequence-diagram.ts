interface Participant {
  readonly id: string
  readonly label: Text
}

/** A text of one or more lines. */
interface Text {
  readonly lines: readonly string[]
  readonly width: number
}

interface Row {
  readonly type: 'message' | 'note'
  readonly from: number
  readonly to: number
  readonly text: Text
  readonly dashed: boolean
}

interface Diagram {
  readonly title: string
  readonly participants: readonly Participant[]
  readonly rows: readonly Row[]
}

type Center = (index: number) => number

const letterWidth = 7.6
const lineHeight = 16
const longestLine = 22
const margin = 12

const escaped = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')

function textOf(words: string): Text {
  const lines = ['']
  for (const word of words.split(' ')) {
    const longer = `${lines.at(-1)} ${word}`.trimStart()
    if (longer.length <= longestLine || lines.at(-1) === '') lines[lines.length - 1] = longer
    else lines.push(word)
  }
  return { lines, width: Math.ceil(Math.max(...lines.map(({ length }) => length)) * letterWidth) }
}

/** The last line is at `bottom`. */
const drawText = ({ lines }: Text, x: number, bottom: number, style = ''): string =>
  lines
    .map((line, index) => {
      const y = bottom - (lines.length - 1 - index) * lineHeight
      return `<text${style === '' ? '' : ` class="${style}"`} x="${x}" y="${y}">${escaped(line)}</text>`
    })
    .join('')

/**
 * Draws a Mermaid sequence diagram as SVG, so that the same block shows on GitHub and in the site, which needs no browser
 * to build. It knows participants, messages and notes; any other statement is an error. Colors come from the style sheet.
 */
export function drawSequence(source: string): string {
  const { title, participants, rows } = parse(source)
  const centers = placeParticipants(participants, rows)
  const center: Center = (index) => centers[index] ?? 0
  const boxHeight = 18 + lineHeight * Math.max(...participants.map(({ label }) => label.lines.length))
  const drawn: string[] = []
  let y = margin + boxHeight + 8
  for (const row of rows) {
    y += 20 + row.text.lines.length * lineHeight
    drawn.push(...(row.type === 'note' ? drawNote(row, y, center) : drawMessage(row, y, center)))
  }
  const height = y + 2 * margin
  const boxes = participants.flatMap(({ label }, index) => {
    const width = label.width + 20
    const bottom = margin + (boxHeight + (label.lines.length - 1) * lineHeight) / 2 + 5
    return [
      `<line class="lifeline" x1="${center(index)}" y1="${margin + boxHeight}" x2="${center(index)}" y2="${height - margin}"/>`,
      `<rect class="box" x="${center(index) - width / 2}" y="${margin}" width="${width}" height="${boxHeight}" rx="6"/>`,
      drawText(label, center(index), bottom, 'name'),
    ]
  })
  const width =
    margin +
    Math.max(
      ...participants.map(({ label }, index) => center(index) + label.width / 2 + 10),
      ...rows.map((row) => rightEnd(row, center)),
    )
  const size = `width="${width}" height="${height}" viewBox="0 0 ${width} ${height}"`
  return `<svg role="img" aria-label="${escaped(title)}" ${size}>${boxes.join('')}${drawn.join('')}</svg>`
}

function parse(source: string): Diagram {
  const [first = '', ...lines] = source
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
  if (first !== 'sequenceDiagram') throw new Error(`only sequence diagrams are supported, not "${first}"`)
  let title = ''
  const participants: Participant[] = []
  const rows: Row[] = []
  const indexOf = (id: string): number => {
    const index = participants.findIndex((one) => one.id === id)
    if (index < 0) throw new Error(`"${id}" is not a participant: declare it with "participant ${id} as …"`)
    return index
  }
  for (const line of lines) {
    const about = /^accTitle: (.+)$/.exec(line)
    const participant = /^participant (\w+) as (.+)$/.exec(line)
    const message = /^(\w+)(--?)>>(\w+): (.+)$/.exec(line)
    const note = /^Note over (\w+)(?:,(\w+))?: (.+)$/.exec(line)
    if (about) [, title = ''] = about
    else if (participant) participants.push({ id: participant[1] ?? '', label: textOf(participant[2] ?? '') })
    else if (message) {
      const [, from = '', dash, to = '', text = ''] = message
      rows.push({ type: 'message', from: indexOf(from), to: indexOf(to), text: textOf(text), dashed: dash === '--' })
    } else if (note) {
      const [, from = '', to = from, text = ''] = note
      rows.push({ type: 'note', from: indexOf(from), to: indexOf(to), text: textOf(text), dashed: false })
    } else throw new Error(`not supported in a diagram: "${line}"`)
  }
  if (title === '') throw new Error('a diagram needs a line "accTitle: …", which screen readers read')
  return { title, participants, rows }
}

/** From left to right, as close together as boxes and texts allow. */
function placeParticipants(participants: readonly Participant[], rows: readonly Row[]): number[] {
  const centers: number[] = []
  for (const [index, { label }] of participants.entries()) {
    const before = participants[index - 1]
    const half = label.width / 2 + 10
    const left = before === undefined ? margin : (centers[index - 1] ?? 0) + before.label.width / 2 + 10 + 16
    const needed = rows.map((row) => {
      const [low, high] = [Math.min(row.from, row.to), Math.max(row.from, row.to)]
      const start = centers[low] ?? 0
      if (low !== high) return high === index ? start + row.text.width + 24 : 0
      if (row.type === 'note' && low === index) return margin + row.text.width / 2 + 10
      if (low !== index - 1) return 0
      return start + (row.type === 'note' ? row.text.width / 2 + 24 : row.text.width + 40)
    })
    centers.push(Math.ceil(Math.max(left + half, ...needed)))
  }
  return centers
}

function rightEnd({ type, from, to, text }: Row, center: Center): number {
  const right = center(Math.max(from, to))
  if (from !== to) return right + 14
  return right + (type === 'note' ? text.width / 2 + 10 : text.width + 34)
}

function drawNote({ from, to, text }: Row, y: number, center: Center): string[] {
  const middle = (center(from) + center(to)) / 2
  const width = Math.max(text.width + 20, Math.abs(center(to) - center(from)) + 28)
  const height = text.lines.length * lineHeight + 12
  return [
    `<rect class="note" x="${middle - width / 2}" y="${y - height + 6}" width="${width}" height="${height}" rx="4"/>`,
    drawText(text, middle, y - 4, 'noted'),
  ]
}

function drawMessage({ from, to, text, dashed }: Row, y: number, center: Center): string[] {
  const [start, end] = [center(from), center(to)]
  const style = dashed ? 'message dashed' : 'message'
  if (start === end) {
    return [
      `<path class="${style}" d="M${start} ${y - 16}h24v16h-18"/>`,
      arrowhead(start, y, -1),
      drawText(text, start + 32, y - 4, 'beside'),
    ]
  }
  const direction = end > start ? 1 : -1
  return [
    `<line class="${style}" x1="${start}" y1="${y}" x2="${end - 6 * direction}" y2="${y}"/>`,
    arrowhead(end, y, direction),
    drawText(text, (start + end) / 2, y - 8),
  ]
}

const arrowhead = (x: number, y: number, direction: 1 | -1): string =>
  `<polygon class="head" points="${x},${y} ${x - 9 * direction},${y - 5} ${x - 9 * direction},${y + 5}"/>`
