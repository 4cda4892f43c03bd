setUpColours();
setUpPrinting();
const openSample = setUpSamples();
document.documentElement.dataset.ready = "samples";
setUpFailures(openSample);
