import type { CompletionOption, CompletionPlace, CompletionWord } from './places.ts'

/** A file for a folder of fish's completions. */
export const fishCompletion = (places: readonly CompletionPlace[]): string => `# Completion of gatehouse for fish.
function __gatehouse_at
    set -l place gatehouse
    for word in (commandline -opc)[2..-1]
        switch "$place $word"
            case ${places
              .slice(1)
              .map(({ words }) => quoted(words))
              .join(' ')}
                set place "$place $word"
        end
    end
    test "$place" = "$argv"
end
complete -c gatehouse -f
${places.flatMap(linesOf).join('\n')}`

function linesOf({ words, next, options, takesFiles }: CompletionPlace): string[] {
  const start = `complete -c gatehouse -n ${quoted(`__gatehouse_at ${words}`)}`
  return [
    ...next.map((each) => `${start} -a ${each.word}${about(each)}`),
    ...options.map((option) => `${start} -l ${option.word.slice(2)}${taken(option)}${about(option)}`),
    ...(takesFiles ? [`${start} -F`] : []),
  ]
}

function taken({ value }: CompletionOption): string {
  if (value === undefined) return ''
  if (value.isFile) return ' -r -F'
  return value.choices.length === 0 ? ' -x' : ` -x -a ${quoted(value.choices.join(' '))}`
}

const about = ({ about: text }: CompletionWord): string => (text === '' ? '' : ` -d ${quoted(text)}`)

const quoted = (text: string): string => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`
