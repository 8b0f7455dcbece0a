import type { CompletionOption, CompletionPlace, CompletionWord } from './places.ts'

/** A function for a folder of `fpath`, which can also be sourced. */
export const zshCompletion = (places: readonly CompletionPlace[]): string => `#compdef gatehouse
# Completion of gatehouse for zsh.
_gatehouse() {
  local place=gatehouse files=
  local -i i
  local -a following options
  for ((i = 2; i < CURRENT; i++)); do
    case "$place \${words[i]}" in
      (${places
        .slice(1)
        .map(({ words }) => quoted(words))
        .join('|')}) place="$place \${words[i]}" ;;
    esac
  done
  case "$place \${words[CURRENT-1]}" in
${places.flatMap(({ words, options }) => options.flatMap((option) => valueCase(words, option))).join('\n')}
  esac
  case $place in
${places.map(placeCase).join('\n')}
  esac
  (( \${#following} )) && _describe -t words 'command' following
  if [[ -n $files && \${words[CURRENT]} != -* ]]; then _files; fi
  _describe -o -t options 'option' options
}
if [[ \${funcstack[1]} == _gatehouse ]]; then
  _gatehouse "$@"
else
  compdef _gatehouse gatehouse
fi`

function valueCase(words: string, { word, value }: CompletionOption): string[] {
  if (value === undefined) return []
  const action = value.isFile
    ? '_files'
    : value.choices.length === 0
      ? "_message 'value'"
      : `compadd -- ${value.choices.join(' ')}`
  return [`    (${quoted(`${words} ${word}`)}) ${action}; return ;;`]
}

function placeCase({ words, next, options, takesFiles }: CompletionPlace): string {
  return `    (${quoted(words)})
      following=(${next.map(described).join(' ')})
      options=(${options.map(described).join(' ')})${takesFiles ? '\n      files=yes' : ''} ;;`
}

const described = ({ word, about }: CompletionWord): string =>
  quoted(about === '' ? word : `${word}:${about.replaceAll('\\', '\\\\').replaceAll(':', '\\:')}`)

const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`
