// Runs before the page is drawn, so that a chosen theme does not flash in the other one's colors.
{
  const chosen = localStorage.getItem('gatehouse-docs-theme')
  if (chosen === 'light' || chosen === 'dark') document.documentElement.dataset['theme'] = chosen
}
